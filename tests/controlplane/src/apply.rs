//! Server-side apply of YAML, as `kubectl apply --server-side` does it, but waiting for new kinds to be served.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
    discovery::{self, ApiCapabilities, Scope},
    runtime::wait::{await_condition, conditions::is_crd_established},
};
use serde_json::Value;

/// A new kind is served within 2 seconds of its CRD on an idle machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// How long to wait between two looks for a kind that is not served yet.
const PAUSE: Duration = Duration::from_millis(50);

/// When the server says "later" without saying when.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Applies every document of `yaml` in order, as the owner `controlplane-tests`, taking fields from others.
///
/// After a CustomResourceDefinition it waits until the server answers requests for that kind, so that whoever
/// comes next does not meet the "storage is (re)initializing" of a new kind. An object of a namespaced kind
/// without a namespace goes to `default`.
pub async fn apply_yaml(client: &Client, yaml: &str) -> anyhow::Result<()> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(yaml).context("cannot parse the YAML to apply")?;
    let mut kinds = HashMap::new();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        let object: DynamicObject =
            serde_json::from_value(document).context("cannot read a document as an object")?;
        apply_object(client, &mut kinds, object).await?;
    }
    Ok(())
}

/// Repeats `request` as long as the server answers 429, waiting as long as it asks to each time.
pub async fn retry_throttled<T>(request: impl AsyncFn() -> kube::Result<T>) -> kube::Result<T> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match request().await {
            Err(kube::Error::Api(status)) if status.code == 429 && Instant::now() < deadline => {
                let asked_s = status.details.map_or(0, |details| details.retry_after_seconds);
                let pause = if asked_s == 0 { RETRY_AFTER } else { Duration::from_secs(u64::from(asked_s)) };
                tokio::time::sleep(pause).await;
            }
            result => return result,
        }
    }
}

type Kinds = HashMap<GroupVersionKind, (ApiResource, ApiCapabilities)>;

async fn apply_object(client: &Client, kinds: &mut Kinds, object: DynamicObject) -> anyhow::Result<()> {
    let types = object.types.as_ref().context("an object without apiVersion and kind")?;
    let name = object.metadata.name.clone().with_context(|| format!("a {} without a name", types.kind))?;
    let gvk = GroupVersionKind::try_from(types).with_context(|| format!("{} `{name}`", types.kind))?;
    if !kinds.contains_key(&gvk) {
        kinds.insert(gvk.clone(), find_kind(client, &gvk).await?);
    }
    let (resource, capabilities) = &kinds[&gvk];
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), resource),
        Scope::Namespaced => {
            let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
            Api::namespaced_with(client.clone(), namespace, resource)
        }
    };
    let params = PatchParams::apply("controlplane-tests").force();
    retry_throttled(async || api.patch(&name, &params, &Patch::Apply(&object)).await)
        .await
        .with_context(|| format!("cannot apply {} `{name}`", gvk.kind))?;
    if gvk.kind == "CustomResourceDefinition" {
        wait_until_served(client, &name).await?;
    }
    Ok(())
}

/// Discovery lags a little behind the Established condition of a CRD.
async fn find_kind(
    client: &Client,
    gvk: &GroupVersionKind,
) -> anyhow::Result<(ApiResource, ApiCapabilities)> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match discovery::pinned_kind(client, gvk).await {
            Ok(found) => return Ok(found),
            Err(error) if is_unknown(&error) && Instant::now() < deadline => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot find kind {} of `{}`", gvk.kind, gvk.group));
            }
        }
    }
}

fn is_unknown(error: &kube::Error) -> bool {
    match error {
        kube::Error::Discovery(_) => true,
        kube::Error::Api(status) => matches!(status.code, 404 | 429 | 503),
        _ => false,
    }
}

async fn wait_until_served(client: &Client, name: &str) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let established = await_condition(definitions, name, is_crd_established());
    let definition = match tokio::time::timeout(DEADLINE, established).await {
        Ok(found) => found?.with_context(|| format!("CustomResourceDefinition `{name}` went away"))?,
        Err(_) => {
            bail!("CustomResourceDefinition `{name}` is not Established after {} s", DEADLINE.as_secs())
        }
    };
    let spec = definition.spec;
    for version in spec.versions.iter().filter(|version| version.served) {
        let gvk = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
        let (resource, _) = find_kind(client, &gvk).await?;
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let one = ListParams::default().limit(1);
        retry_throttled(async || api.list(&one).await)
            .await
            .with_context(|| format!("cannot list {} after its definition", gvk.kind))?;
    }
    Ok(())
}
