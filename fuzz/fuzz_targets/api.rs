//! Any bodies and queries, by an administrator, an instance and a reader: every answer is a success or a
//! refusal that says why, none is the collector's own fault, and the profile stays possible.

#![no_main]

use std::cell::RefCell;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use libfuzzer_sys::fuzz_target;
use object_store::memory::InMemory;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tomo_collector::{Collector, Options, Store, router};
use tomo_protocol::{Bound, Campaign, NewCampaign, NewModule, Policy, Problem, Profile, Strategy};
use tomo_wire::ModuleId;
use tomo_wire::plan::{Entry, Level, Plan, Tactic};
use tomo_wire::report::Report;
use tower::ServiceExt as _;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes as _, IntoBytes as _};

const UNITS: u32 = 64;
const STEM: &str = "ab01-00000000000000ff";
/// What comes in is stored, so a collector is thrown away after so many requests.
const REQUESTS: u32 = 5000;

struct Site {
    runtime: Runtime,
    router: Router,
    admin: String,
    campaign: Campaign,
    instance: String,
    reader: String,
    requests: u32,
}

thread_local! {
    static SITE: RefCell<Option<Site>> = const { RefCell::new(None) };
}

fuzz_target!(|data: &[u8]| {
    SITE.with_borrow_mut(|site| {
        if site.as_ref().is_none_or(|site| site.requests >= REQUESTS) {
            *site = Some(Site::new());
        }
        if let (Some(site), Some((which, data))) = (site.as_mut(), data.split_first()) {
            site.requests += 1;
            site.check(*which, data);
        }
    });
});

impl Site {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("admin.token");
        let collector = runtime.block_on(async {
            let store = Store::over(Arc::new(InMemory::new()));
            let collector = Collector::open(store, Options::default())
                .await
                .expect("a collector");
            collector
                .ensure_administrator(&file)
                .await
                .expect("a token");
            Arc::new(collector)
        });
        let admin = std::fs::read_to_string(&file)
            .expect("a token")
            .trim()
            .to_owned();
        let router = router(&collector);
        let mut site = Self {
            runtime,
            router,
            admin,
            campaign: serde_json::from_value(empty()).expect("a campaign"),
            instance: String::new(),
            reader: String::new(),
            requests: 0,
        };
        site.begin();
        site
    }

    fn begin(&mut self) {
        let admin = self.admin.clone();
        let program = json!({ "stem": STEM, "name": "p", "build_id": null, "size": 0, "functions": 0, "version": "" });
        let program = program.to_string();
        self.succeeds(
            "PUT",
            &format!("/v1/programs/{STEM}"),
            &admin,
            program.as_bytes(),
        );
        let module = ModuleId::by_build_id(&[0xab, 1], 0xff).expect("an id");
        let entry = |unit: u32| Entry {
            from: u64::from(unit).into(),
            to: 0.into(),
            tactic: (Tactic::Quadword as u32).into(),
            is_edge: 0.into(),
        };
        let units: Vec<Entry> = (0..UNITS).map(entry).collect();
        let header = Plan::of(module, Level::Block, 1, &units);
        let plan = [header.as_bytes(), units.as_bytes()].concat();
        let name = tomo_protocol::Name(header.name());
        self.succeeds("PUT", &format!("/v1/plans/{name}"), &admin, &plan);
        let new = NewCampaign {
            name: "fuzz".into(),
            modules: vec![NewModule {
                stem: STEM.into(),
                level: "block".into(),
                placement: "all".into(),
                plan: name,
                clusters: Vec::new(),
                events: Vec::new(),
                only: None,
            }],
            strategy: Strategy::BalancedProbes,
            variants: 4,
            bound: Bound::Probes(16),
            seed: 1,
            policy: Policy::default(),
            search: None,
        };
        let new = serde_json::to_vec(&new).expect("JSON");
        let made = self.succeeds("POST", "/v1/campaigns", &admin, &new);
        self.campaign = serde_json::from_slice(&made).expect("a campaign");
        let tokens = format!("/v1/campaigns/{}/tokens", self.campaign.id);
        let token = |role: &str| {
            let body = json!({ "role": role }).to_string();
            let made = self.succeeds("POST", &tokens, &admin, body.as_bytes());
            let made: Value = serde_json::from_slice(&made).expect("JSON");
            made["token"].as_str().expect("a token").to_owned()
        };
        (self.instance, self.reader) = (token("instance"), token("reader"));
    }

    fn ask(
        &self,
        method: &str,
        path: &str,
        token: &str,
        body: &[u8],
    ) -> Option<(StatusCode, Vec<u8>)> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {token}"))
            .body(Body::from(body.to_vec()))
            .ok()?;
        self.runtime.block_on(async {
            let response = self
                .router
                .clone()
                .oneshot(request)
                .await
                .expect("infallible");
            let status = response.status();
            let body = response.into_body().collect().await.expect("a body");
            Some((status, body.to_bytes().to_vec()))
        })
    }

    fn succeeds(&self, method: &str, path: &str, token: &str, body: &[u8]) -> Vec<u8> {
        let (status, body) = self.ask(method, path, token, body).expect("a request");
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
        body
    }

    fn check(&self, which: u8, data: &[u8]) {
        let id = self.campaign.id;
        let text = String::from_utf8_lossy(data);
        let quoted: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer = match which % 12 {
            0 => self.ask("POST", "/v1/reports", &self.instance, data),
            1 => self.ask("POST", "/v1/reports", &self.instance, &self.sealed(data)),
            2 => self.ask(
                "POST",
                &format!("/v1/reports?since={quoted}"),
                &self.instance,
                b"",
            ),
            3 => self.ask(
                "GET",
                &format!("/v1/assignment?instance={quoted}"),
                &self.instance,
                b"",
            ),
            4 => self.ask(
                "GET",
                &format!("/v1/assignment?{text}"),
                &self.instance,
                b"",
            ),
            5 => self.ask("POST", "/v1/campaigns", &self.admin, data),
            6 => self.ask("PUT", &format!("/v1/plans/{quoted}"), &self.admin, data),
            7 => self.ask("PUT", &format!("/v1/programs/{STEM}"), &self.admin, data),
            8 => self.ask(
                "PUT",
                &format!("/v1/programs/{quoted}/model"),
                &self.admin,
                data,
            ),
            9 => self.ask(
                "POST",
                &format!("/v1/campaigns/{id}/tokens"),
                &self.admin,
                data,
            ),
            10 => self.ask("DELETE", &format!("/v1/tokens/{quoted}"), &self.admin, b""),
            _ => self.ask(
                "GET",
                &format!("/v1/campaigns/{quoted}/profile"),
                &self.reader,
                data,
            ),
        };
        if let Some((status, body)) = answer {
            assert!(!status.is_server_error(), "{status}");
            if !status.is_success() {
                let problem: Problem = serde_json::from_slice(&body).expect("a problem");
                assert!(!problem.error.is_empty() && !problem.advice.is_empty());
            }
        }
        let body = self.succeeds(
            "GET",
            &format!("/v1/campaigns/{id}/profile"),
            &self.reader,
            b"",
        );
        let profile: Profile = serde_json::from_slice(&body).expect("a profile");
        let unseen: u64 = profile.unseen.iter().map(|group| group.units.len()).sum();
        assert_eq!(profile.seen.len() as u64 + unseen, u64::from(UNITS));
    }

    /// Reports with any numbers in them that belong to this campaign otherwise.
    fn sealed(&self, data: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        for data in data.chunks(size_of::<Report>() + 32) {
            let Ok((mut report, rest)) = Report::read_from_prefix(data) else {
                break;
            };
            (report.campaign, report.plans) = (self.campaign.id.0, self.campaign.plans.0.into());
            report.variant = (report.variant.get() % 5).into();
            report.outcome = (report.outcome.get() % 5).into();
            let mut hits: Vec<U32> = rest.iter().map(|byte| u32::from(*byte).into()).collect();
            hits.sort_unstable_by_key(|hit| hit.get());
            hits.dedup();
            body.extend(report.sealed(&hits));
            body.extend(hits.as_bytes());
        }
        body
    }
}

fn empty() -> Value {
    json!({
        "id": "0".repeat(32), "name": "", "created": 0, "modules": [], "plans": "0".repeat(16),
        "units": 0, "strategy": "random-probes", "bound": "none", "seed": 0,
        "policy": { "buffer": null, "interval_ms": null, "update_at_start": true, "piggyback": true },
        "variants": [],
    })
}
