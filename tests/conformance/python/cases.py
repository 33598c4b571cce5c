"""The cases of the official Python client: its typed clients, its dynamic client, its watch.

Called with the path of a kubeconfig. Prints a line per case: `ok NAME`, or `failed NAME: why` with more lines indented;
before it `differs NAME: reason` where the embedded control plane does otherwise.
The kinds are those of ../fixtures. Never here: another client, or a wait without a limit.
"""

import json
import sys
import time
import traceback

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

GROUP, VERSION, PLURAL = "conformance.example.com", "v1", "things"
PATIENCE_S = 40
CASES = []


def case(function):
    """Marks a case; its name is its claim."""
    CASES.append(function)
    return function


def differs(reason):
    """Says why the embedded control plane does otherwise in a case, and may. It then has to."""

    def marked(function):
        function.differs = reason
        return function

    return marked


class Scene:
    """What a case is given: clients and a namespace of its own."""

    def __init__(self, api_client, name):
        self.api = api_client
        self.name = name
        self.core = client.CoreV1Api(api_client)
        self.apps = client.AppsV1Api(api_client)
        self.custom = client.CustomObjectsApi(api_client)
        self.policy = client.PolicyV1Api(api_client)
        self.leases = client.CoordinationV1Api(api_client)
        self.dynamic = dynamic.DynamicClient(api_client)
        self.core.create_namespace({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        try:
            self.core.create_namespaced_service_account(name, {"metadata": {"name": "default"}})
        except ApiException as error:
            # The loop that makes it was faster.
            equal(error.status, 409)

    def things(self):
        return self.dynamic.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Thing")

    def make_thing(self, name="a", **spec):
        return self.custom.create_namespaced_custom_object(GROUP, VERSION, self.name, PLURAL, thing(name, **spec))

    def make_map(self, name="a", **data):
        return self.core.create_namespaced_config_map(self.name, config_map(name, **data))

    def make_pod(self, name="a", **spec):
        container = {"name": "main", "image": "i"}
        body = {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"containers": [container], **spec}}
        return self.core.create_namespaced_pod(self.name, body)


def thing(name="a", **spec):
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Thing", "metadata": {"name": name}, "spec": {"size": 1, **spec}}


def config_map(name="a", **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"k": "v"}}


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"wanted {wanted!r}, got {got!r}")


def refused(status, reason, call, *arguments, **named):
    """Expects a refusal, and returns its Status."""
    try:
        answer = call(*arguments, **named)
    except ApiException as error:
        equal(error.status, status)
        body = json.loads(error.body)
        equal(body["reason"], reason)
        return body
    raise AssertionError(f"wanted {status} {reason}, got {answer!r}")


def eventually(is_so):
    """Asks until it is so, or until patience ends."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"it is not so after {PATIENCE_S} s")
        time.sleep(0.05)


def is_gone(call, *arguments):
    try:
        call(*arguments)
    except ApiException as error:
        return error.status == 404
    return False


@case
def a_config_map_is_made_and_read(scene):
    made = scene.make_map()
    read = scene.core.read_namespaced_config_map("a", scene.name)
    equal(read.metadata.uid, made.metadata.uid)
    equal(read.data, {"k": "v"})


@case
def a_time_of_creation_is_a_time(scene):
    made = scene.make_map()
    equal(made.metadata.creation_timestamp.tzinfo is not None, True)


@case
def a_name_is_completed(scene):
    body = {"metadata": {"generateName": "begin-"}}
    made = scene.core.create_namespaced_config_map(scene.name, body)
    equal((made.metadata.name[:6], len(made.metadata.name)), ("begin-", 11))


@case
def a_name_is_given_once(scene):
    scene.make_map()
    refusal = refused(409, "AlreadyExists", scene.make_map)
    equal(refusal["message"], 'configmaps "a" already exists')


@case
def what_is_not_there_is_not_found(scene):
    refusal = refused(404, "NotFound", scene.core.read_namespaced_config_map, "nobody", scene.name)
    equal(refusal["details"], {"name": "nobody", "kind": "configmaps"})


@case
def a_config_map_is_replaced_with_its_revision(scene):
    made = scene.make_map()
    made.data = {"k": "w"}
    replaced = scene.core.replace_namespaced_config_map("a", scene.name, made)
    equal(replaced.data, {"k": "w"})
    refused(409, "Conflict", scene.core.replace_namespaced_config_map, "a", scene.name, made)


@case
def a_dict_is_a_strategic_patch(scene):
    scene.make_map(k="v", other="w")
    patched = scene.core.patch_namespaced_config_map("a", scene.name, {"data": {"k": None, "l": "x"}})
    equal(patched.data, {"other": "w", "l": "x"})


@case
def a_list_is_a_json_patch(scene):
    scene.make_map()
    patch = [{"op": "replace", "path": "/data/k", "value": "w"}]
    equal(scene.core.patch_namespaced_config_map("a", scene.name, patch).data, {"k": "w"})


@case
def a_deletion_is_answered_with_a_status(scene):
    scene.make_map()
    answer = scene.core.delete_namespaced_config_map("a", scene.name)
    equal((answer["status"], answer["details"]["name"]), ("Success", "a"))
    refused(404, "NotFound", scene.core.delete_namespaced_config_map, "a", scene.name)


@case
def a_deletion_takes_options(scene):
    made = scene.make_map()
    wrong = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="other"))
    refused(409, "Conflict", scene.core.delete_namespaced_config_map, "a", scene.name, body=wrong)
    right = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=made.metadata.uid))
    scene.core.delete_namespaced_config_map("a", scene.name, body=right)


@case
def a_collection_is_deleted_as_selected(scene):
    scene.core.create_namespaced_secret(scene.name, {"metadata": {"name": "a", "labels": {"x": "1"}}})
    scene.core.create_namespaced_secret(scene.name, {"metadata": {"name": "b"}})
    scene.core.delete_collection_namespaced_secret(scene.name, label_selector="x=1")
    equal([item.metadata.name for item in scene.core.list_namespaced_secret(scene.name).items], ["b"])


@case
def a_list_is_read_in_pages(scene):
    for name in ["a", "b", "c"]:
        scene.core.create_namespaced_secret(scene.name, {"metadata": {"name": name}})
    first = scene.core.list_namespaced_secret(scene.name, limit=2)
    equal([item.metadata.name for item in first.items], ["a", "b"])
    equal(first.metadata.remaining_item_count, 1)
    rest = scene.core.list_namespaced_secret(scene.name, limit=2, _continue=first.metadata._continue)
    equal([item.metadata.name for item in rest.items], ["c"])


@case
def a_list_is_selected_by_labels_and_fields(scene):
    scene.make_pod("a", nodeName="n1")
    scene.make_pod("b")
    on_node = scene.core.list_namespaced_pod(scene.name, field_selector="spec.nodeName=n1", label_selector="app in (web)")
    equal([pod.metadata.name for pod in on_node.items], ["a"])


@case
def a_secret_keeps_bytes(scene):
    made = scene.core.create_namespaced_secret(scene.name, client.V1Secret(metadata={"name": "a"}, string_data={"k": "text"}))
    equal((made.data, made.type), ({"k": "dGV4dA=="}, "Opaque"))


@case
def a_dry_run_keeps_nothing(scene):
    scene.core.create_namespaced_config_map(scene.name, config_map(), dry_run="All")
    refused(404, "NotFound", scene.core.read_namespaced_config_map, "a", scene.name)


@case
def unknown_fields_are_refused_with_strict_validation(scene):
    create, where = scene.custom.create_namespaced_custom_object, (GROUP, VERSION, scene.name, PLURAL)
    refused(400, "BadRequest", create, *where, thing(extra=1), field_validation="Strict")


@case
def a_custom_object_gets_its_defaults(scene):
    made = scene.make_thing()
    equal(made["spec"], {"size": 1, "mode": "Slow", "replicas": 1})
    equal(made["metadata"]["generation"], 1)


@case
def a_custom_object_is_validated(scene):
    refusal = refused(422, "Invalid", scene.make_thing, size=1000)
    equal(refusal["details"]["causes"][0]["field"], "spec.size")


@case
def custom_objects_are_listed(scene):
    scene.make_thing("b")
    scene.make_thing("a")
    listed = scene.custom.list_namespaced_custom_object(GROUP, VERSION, scene.name, PLURAL)
    equal(listed["kind"], "ThingList")
    equal([item["metadata"]["name"] for item in listed["items"]], ["a", "b"])


@case
def a_custom_object_is_patched(scene):
    scene.make_thing()
    patch = {"spec": {"size": 5}}
    patched = scene.custom.patch_namespaced_custom_object(GROUP, VERSION, scene.name, PLURAL, "a", patch)
    equal((patched["spec"]["size"], patched["metadata"]["generation"]), (5, 2))


@case
def the_status_of_a_custom_object_is_patched(scene):
    scene.make_thing()
    patch = {"status": {"phase": "Done"}, "spec": {"size": 9}}
    patched = scene.custom.patch_namespaced_custom_object_status(GROUP, VERSION, scene.name, PLURAL, "a", patch)
    equal((patched["status"], patched["spec"]["size"]), ({"phase": "Done"}, 1))


@case
def the_scale_of_a_custom_object_is_read_and_patched(scene):
    scene.make_thing()
    scale = scene.custom.get_namespaced_custom_object_scale(GROUP, VERSION, scene.name, PLURAL, "a")
    equal((scale["kind"], scale["spec"]["replicas"]), ("Scale", 1))
    patch = {"spec": {"replicas": 3}}
    scaled = scene.custom.patch_namespaced_custom_object_scale(GROUP, VERSION, scene.name, PLURAL, "a", patch)
    equal(scaled["spec"]["replicas"], 3)


@case
def a_custom_object_is_replaced(scene):
    made = scene.make_thing()
    made["spec"]["size"] = 7
    replaced = scene.custom.replace_namespaced_custom_object(GROUP, VERSION, scene.name, PLURAL, "a", made)
    equal(replaced["spec"]["size"], 7)


@case
def a_custom_object_of_the_cluster_is_made_and_deleted(scene):
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Wide", "metadata": {"name": scene.name}}
    scene.custom.create_cluster_custom_object(GROUP, VERSION, "wides", body)
    answer = scene.custom.delete_cluster_custom_object(GROUP, VERSION, "wides", scene.name)
    equal(answer["status"], "Success")


@case
def a_watch_streams_typed_events(scene):
    revision = scene.core.list_namespaced_secret(scene.name).metadata.resource_version
    scene.core.create_namespaced_secret(scene.name, {"metadata": {"name": "a"}})
    scene.core.delete_namespaced_secret("a", scene.name)
    stream = watch.Watch()
    seen = []
    events = stream.stream(scene.core.list_namespaced_secret, scene.name, resource_version=revision, timeout_seconds=PATIENCE_S)
    for event in events:
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 2:
            stream.stop()
    equal(seen, [("ADDED", "a"), ("DELETED", "a")])


@case
def a_watch_streams_custom_events(scene):
    scene.make_thing()
    stream = watch.Watch()
    arguments = (GROUP, VERSION, scene.name, PLURAL)
    for event in stream.stream(scene.custom.list_namespaced_custom_object, *arguments, timeout_seconds=PATIENCE_S):
        equal((event["type"], event["object"]["spec"]["mode"]), ("ADDED", "Slow"))
        stream.stop()


@case
def a_watch_ends_after_its_time(scene):
    began = time.monotonic()
    events = watch.Watch().stream(scene.core.list_namespaced_secret, scene.name, timeout_seconds=1)
    equal(list(events), [])
    equal(time.monotonic() - began < PATIENCE_S, True)


@case
def a_watch_from_too_long_ago_is_expired(scene):
    where = (GROUP, VERSION, scene.name, PLURAL)
    listing = scene.custom.list_namespaced_custom_object
    try:
        list(watch.Watch().stream(listing, *where, resource_version="1", timeout_seconds=5))
    except ApiException as error:
        equal(error.status, 410)
    else:
        raise AssertionError("the watch was served")


@case
def the_dynamic_client_finds_kinds(scene):
    things = scene.things()
    equal((things.name, things.namespaced, things.group), (PLURAL, True, GROUP))
    equal(scene.dynamic.resources.get(api_version="v1", kind="Node").namespaced, False)


@case
def the_dynamic_client_makes_reads_and_deletes(scene):
    things = scene.things()
    made = things.create(body=thing(), namespace=scene.name)
    equal(things.get(name="a", namespace=scene.name).metadata.uid, made.metadata.uid)
    things.delete(name="a", namespace=scene.name)
    try:
        things.get(name="a", namespace=scene.name)
    except NotFoundError:
        return
    raise AssertionError("it is still there")


@case
def the_dynamic_client_patches(scene):
    things = scene.things()
    things.create(body=thing(), namespace=scene.name)
    patch = {"spec": {"size": 4}}
    answer = things.patch(name="a", namespace=scene.name, body=patch, content_type="application/merge-patch+json")
    equal(answer.spec.size, 4)


@case
def the_dynamic_client_applies(scene):
    things = scene.things()
    things.server_side_apply(body=thing(), name="a", namespace=scene.name, field_manager="one")
    try:
        things.server_side_apply(body=thing(size=2), name="a", namespace=scene.name, field_manager="two")
    except ConflictError:
        pass
    else:
        raise AssertionError("there was no conflict")
    forced = {"field_manager": "two", "force_conflicts": True}
    answer = things.server_side_apply(body=thing(size=2), name="a", namespace=scene.name, **forced)
    equal([entry.manager for entry in answer.metadata.managedFields], ["two"])


@case
def the_dynamic_client_writes_the_status(scene):
    things = scene.things()
    made = things.create(body=thing(), namespace=scene.name).to_dict()
    made["status"] = {"phase": "Done"}
    equal(things.status.replace(body=made, name="a", namespace=scene.name).status.phase, "Done")


@case
def the_dynamic_client_watches(scene):
    things = scene.things()
    things.create(body=thing(), namespace=scene.name)
    for event in things.watch(namespace=scene.name, timeout=PATIENCE_S):
        equal((event["type"], event["object"].metadata.name), ("ADDED", "a"))
        break


@case
def a_pod_is_evicted(scene):
    scene.make_pod(nodeName="n1")
    body = client.V1Eviction(metadata=client.V1ObjectMeta(name="a", namespace=scene.name))
    scene.core.create_namespaced_pod_eviction("a", scene.name, body)
    equal(scene.core.read_namespaced_pod("a", scene.name).metadata.deletion_timestamp is not None, True)


@case
def a_budget_refuses_an_eviction(scene):
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    scene.policy.create_namespaced_pod_disruption_budget(scene.name, budget)
    scene.make_pod(nodeName="n1")
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    scene.core.patch_namespaced_pod_status("a", scene.name, ready)
    read = scene.policy.read_namespaced_pod_disruption_budget
    eventually(lambda: read("b", scene.name).status.current_healthy == 1)
    body = client.V1Eviction(metadata=client.V1ObjectMeta(name="a", namespace=scene.name))
    refused(429, "TooManyRequests", scene.core.create_namespaced_pod_eviction, "a", scene.name, body)


@case
def a_node_is_cordoned(scene):
    scene.core.create_node({"metadata": {"name": scene.name}})
    equal(scene.core.patch_node(scene.name, {"spec": {"unschedulable": True}}).spec.unschedulable, True)
    scene.core.delete_node(scene.name)


@case
def a_lease_is_renewed(scene):
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.123456Z"}
    made = scene.leases.create_namespaced_lease(scene.name, {"metadata": {"name": "a"}, "spec": spec})
    equal(made.spec.renew_time.microsecond, 123456)
    made.spec.holder_identity = "you"
    equal(scene.leases.replace_namespaced_lease("a", scene.name, made).spec.holder_identity, "you")


@case
def what_is_owned_is_collected(scene):
    owner = scene.make_thing()
    reference = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Thing", "name": "a", "uid": owner["metadata"]["uid"]}
    body = {"metadata": {"name": "owned", "ownerReferences": [reference]}}
    scene.core.create_namespaced_config_map(scene.name, body)
    scene.custom.delete_namespaced_custom_object(GROUP, VERSION, scene.name, PLURAL, "a")
    eventually(lambda: is_gone(scene.core.read_namespaced_config_map, "owned", scene.name))


@case
def a_namespace_goes_with_what_is_in_it(scene):
    scene.make_thing()
    scene.core.delete_namespace(scene.name)
    eventually(lambda: is_gone(scene.core.read_namespace, scene.name))


@case
def a_deployment_is_made_and_scaled(scene):
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    spec = {"replicas": 0, "paused": True, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    scene.apps.create_namespaced_deployment(scene.name, {"metadata": {"name": "a"}, "spec": spec})
    equal(scene.apps.read_namespaced_deployment_scale("a", scene.name).status.selector, "app=a")


@case
def an_object_of_any_kind_is_made_from_a_dict(scene):
    utils.create_from_dict(scene.api, config_map(), namespace=scene.name)
    equal(scene.core.read_namespaced_config_map("a", scene.name).data, {"k": "v"})


@case
def who_asks_may_do_what_they_ask_about(scene):
    attributes = client.V1ResourceAttributes(verb="delete", resource="nodes")
    review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    equal(client.AuthorizationV1Api(scene.api).create_self_subject_access_review(review).status.allowed, True)


@case
def the_version_is_told(scene):
    equal(client.VersionApi(scene.api).get_code().major, "1")


@case
def groups_and_resources_are_told(scene):
    groups = [group.name for group in client.ApisApi(scene.api).get_api_versions().groups]
    equal([name for name in ["apps", GROUP, "policy"] if name in groups], ["apps", GROUP, "policy"])
    names = [resource.name for resource in scene.core.get_api_resources().resources]
    equal("pods/eviction" in names, True)


def main():
    kubeconfig = sys.argv[1]
    api_client = config.new_client_from_config(kubeconfig)
    run = f"{int(time.time() * 1000) & 0xFFFFFF:x}"
    for number, function in enumerate(CASES):
        name = function.__name__.replace("_", " ")
        if hasattr(function, "differs"):
            print(f"differs {name}: {function.differs}")
        try:
            function(Scene(api_client, f"python-{number}-{run}"))
        except Exception as error:  # A case may fail in any way; the next is done all the same.
            lines = traceback.format_exc().splitlines()
            print(f"failed {name}: {type(error).__name__}: " + "\n  ".join(str(error).splitlines()))
            print("  " + "\n  ".join(line for line in lines if "cases.py" in line), flush=True)
        else:
            print(f"ok {name}", flush=True)


if __name__ == "__main__":
    main()
