//! What the demo makes at an API server before it starts, and takes away at the end: the namespace and the CRDs, as far
//! as they were not there.
//!
//! Never here: a change of anything that was there before.

use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::future::try_join_all;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};

use super::sample::{CHECK, NAMESPACE, Sample};
use crate::args::FeatureSet;
use crate::crds;

/// Owner of the fields that are applied.
const MANAGER: &str = "machine-api-operator-demo";

/// On the namespace: a demo made it, so that one that comes after a demo that was killed may take it over.
const LABEL: &str = "demo.machine.openshift.io/made";

/// A new kind is served within some seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was made. Each entry is put down before the request is sent, so that nothing is forgotten.
#[derive(Debug, Default)]
pub struct Made {
    /// Names of CRDs.
    crds: Vec<String>,
    /// Whether the namespace is the demo's.
    namespace: bool,
}

/// A client with what it is asked for most.
pub struct Installer {
    client: kube::Client,
}

impl Installer {
    /// For this API server.
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Makes the namespace and the CRDs that are not there, and waits until their kinds are established.
    pub async fn prepare(&self, made: &mut Made) -> anyhow::Result<()> {
        self.make_namespace(made).await?;
        let crds: Vec<Value> = serde_saphyr::from_multiple(&crds::yaml(FeatureSet::Default))
            .context("cannot read our own CRDs")?;
        let api = self.cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let mut names = vec![];
        for crd in crds {
            let name = crd["metadata"]["name"].as_str().context("a CRD has a name")?.to_owned();
            // One that is there may be another version's, and have objects: it is used as it is.
            if api.get_opt(&name).await.with_context(|| format!("cannot look for CRD `{name}`"))?.is_none() {
                made.crds.push(name.clone());
                apply(&api, &name, &crd).await?;
            }
            names.push(name);
        }
        let established = names.iter().map(|name| await_condition(api.clone(), name, is_established));
        match tokio::time::timeout(PATIENCE, try_join_all(established)).await {
            Ok(result) => result.map(|_| ()).context("cannot watch the CRDs"),
            Err(_) => bail!("the CRDs are not established after {} s", PATIENCE.as_secs()),
        }
    }

    async fn make_namespace(&self, made: &mut Made) -> anyhow::Result<()> {
        let api = self.cluster("", "v1", "Namespace");
        let found = api.get_opt(NAMESPACE).await.context("cannot ask the API server")?;
        let Some(found) = found else {
            made.namespace = true;
            let body = json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": NAMESPACE, "labels": {LABEL: "true"}}});
            return apply(&api, NAMESPACE, &body).await;
        };
        if found.metadata.deletion_timestamp.is_some() {
            bail!("namespace `{NAMESPACE}` is being deleted: wait until it is gone");
        }
        // What an earlier demo made and could not take away is this one's.
        made.namespace = found.metadata.labels.is_some_and(|labels| labels.contains_key(LABEL));
        if !made.namespace {
            bail!(
                "namespace `{NAMESPACE}` exists and is no demo's: its machines would be looked after and removed"
            );
        }
        Ok(())
    }

    /// Applies the health check.
    pub async fn apply_check(&self, sample: &Sample) -> anyhow::Result<()> {
        apply(&self.machine_api("MachineHealthCheck"), CHECK, &sample.check).await
    }

    /// Applies a set.
    pub async fn apply_set(&self, set: &Value) -> anyhow::Result<()> {
        let name = set["metadata"]["name"].as_str().context("a set has a name")?;
        apply(&self.machine_api("MachineSet"), name, set).await
    }

    /// Takes the namespace away with all that is in it. The controllers must still run: they alone can let machines go.
    pub async fn remove_namespace(&self, made: &Made) -> anyhow::Result<()> {
        if made.namespace { delete(&self.cluster("", "v1", "Namespace"), NAMESPACE).await } else { Ok(()) }
    }

    /// Takes away the CRDs that were made, but for those that somebody else uses by now.
    pub async fn remove_crds(&self, made: &Made) -> anyhow::Result<()> {
        let api = self.cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        for name in &made.crds {
            let Some(crd) = api.get_opt(name).await? else { continue };
            if self.is_used(&crd).await? {
                eprintln!("CRD `{name}` has objects of others and stays");
                continue;
            }
            delete(&api, name).await?;
        }
        Ok(())
    }

    async fn is_used(&self, crd: &DynamicObject) -> anyhow::Result<bool> {
        let spec = &crd.data["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let version = text(&spec["versions"][0]["name"]);
        let gvk = GroupVersionKind::gvk(&text(&spec["group"]), &version, &text(&spec["names"]["kind"]));
        let resource = ApiResource::from_gvk_with_plural(&gvk, &text(&spec["names"]["plural"]));
        let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        Ok(!all.list(&ListParams::default().limit(1)).await?.items.is_empty())
    }

    fn cluster(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::all_with(self.client.clone(), &resource)
    }

    fn machine_api(&self, kind: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(mapi_api::names::GROUP, mapi_api::names::VERSION, kind);
        Api::namespaced_with(self.client.clone(), NAMESPACE, &ApiResource::from_gvk(&gvk))
    }
}

async fn apply(api: &Api<DynamicObject>, name: &str, body: &Value) -> anyhow::Result<()> {
    let parameters = PatchParams::apply(MANAGER).force();
    let applied = api.patch(name, &parameters, &Patch::Apply(body)).await;
    let kind = body["kind"].as_str().unwrap_or_default();
    applied.map(|_| ()).with_context(|| format!("cannot apply {kind} `{name}`"))
}

/// Deletes an object and waits until it is gone.
async fn delete(api: &Api<DynamicObject>, name: &str) -> anyhow::Result<()> {
    let context = || format!("cannot remove `{name}`");
    let Some(found) = api.get_opt(name).await.with_context(context)? else { return Ok(()) };
    match api.delete(name, &DeleteParams::background()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        Err(error) => return Err(error).with_context(context),
    }
    let uid = found.metadata.uid.unwrap_or_default();
    await_condition(api.clone(), name, conditions::is_deleted(&uid)).await.with_context(context)?;
    Ok(())
}

fn is_established(crd: Option<&DynamicObject>) -> bool {
    let conditions = crd.and_then(|crd| crd.data["status"]["conditions"].as_array());
    conditions.into_iter().flatten().any(|c| c["type"] == "Established" && c["status"] == "True")
}
