//! A small campaign over a made-up plan, and reports for it.

use std::sync::Arc;

use tomo_collector::{Collector, Identity, Options, Server, Shutdown, Store};
use tomo_protocol::{
    Answer, Assignment, Bound, Campaign, CampaignId, Client, InstanceId, Name, NewCampaign,
    NewModule, NewToken, Plan, Policy, Program, Role, Settings, Strategy, Token, paths,
};
use tomo_wire::plan::{Entry, Level, Tactic};
use tomo_wire::report::{Follows, Outcome, Report};
use tomo_wire::{ModuleId, plan};
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::{U32, U64};

/// The build that the campaigns here observe.
pub(crate) const STEM: &str = "ab01-00000000000000ff";

/// The master plan of that build, with so many probes.
pub(crate) fn plan_of(probes: u32) -> (Name, Vec<u8>) {
    let module = ModuleId::by_build_id(&[0xab, 1], 0xff).expect("an id");
    let units: Vec<Entry> = (0..probes)
        .map(|unit| Entry {
            from: u64::from(unit).into(),
            to: 0.into(),
            tactic: (Tactic::Quadword as u32).into(),
            is_edge: 0.into(),
        })
        .collect();
    let header = plan::Plan::of(module, Level::Block, 1, &units);
    let bytes = [header.as_bytes(), units.as_bytes()].concat();
    (Name(header.name()), bytes)
}

/// A client with this token.
pub(crate) fn client(url: &str, token: Option<&str>) -> Client {
    let settings = Settings {
        url: url.into(),
        token: token.map(str::to_owned),
        authorities: None,
        timeout: std::time::Duration::from_secs(60),
    };
    Client::new(&settings).expect("an address")
}

/// A program and its plan, uploaded.
pub(crate) fn add_program(admin: &Client, probes: u32) -> Name {
    let program = Program {
        stem: STEM.into(),
        name: "prog".into(),
        build_id: Some("ab01".into()),
        size: 1,
        functions: 1,
        version: "0".into(),
    };
    let path = paths::of_program(paths::PROGRAM, STEM);
    admin.put::<Program>(&path, &program).expect("a program");
    let (name, bytes) = plan_of(probes);
    let plan: Plan = admin
        .put_bytes(&paths::of_plan(name), &bytes)
        .expect("a plan");
    assert_eq!(plan.probes, probes);
    name
}

/// What to ask for to observe that plan.
pub(crate) fn request(plan: Name, variants: u32, bound: Bound) -> NewCampaign {
    NewCampaign {
        name: "test".into(),
        modules: vec![NewModule {
            stem: STEM.into(),
            level: "block".into(),
            placement: "all".into(),
            plan,
            clusters: Vec::new(),
            events: Vec::new(),
            only: None,
        }],
        strategy: Strategy::BalancedProbes,
        variants,
        bound,
        seed: 1,
        policy: Policy::default(),
        search: None,
    }
}

/// A token for a campaign.
pub(crate) fn token(admin: &Client, campaign: CampaignId, role: Role) -> String {
    let path = paths::of_campaign(paths::TOKENS, campaign);
    let new = NewToken {
        role,
        note: String::new(),
    };
    admin.post::<Token>(&path, &new).expect("a token").token
}

/// A collector that serves on a port of its own, with one campaign.
pub(crate) struct Fleet {
    pub(crate) url: String,
    pub(crate) admin: Client,
    pub(crate) campaign: Campaign,
    pub(crate) instances: Client,
    pub(crate) reader: Client,
    pub(crate) collector: Arc<Collector>,
    shutdown: Shutdown,
    server: Option<std::thread::JoinHandle<()>>,
}

/// A server over this store, without any campaign: its address, and what ends it.
pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) admin: String,
    pub(crate) collector: Arc<Collector>,
    pub(crate) shutdown: Shutdown,
    pub(crate) thread: std::thread::JoinHandle<()>,
}

/// Serves on a thread of its own.
pub(crate) fn serve(store: Store, options: Options, admin_file: &std::path::Path) -> Served {
    serve_as(store, options, admin_file, None)
}

/// Serves with TLS, if there is a certificate.
pub(crate) fn serve_as(
    store: Store,
    options: Options,
    admin_file: &std::path::Path,
    identity: Option<Identity>,
) -> Served {
    let scheme = if identity.is_some() { "https" } else { "http" };
    let (sender, receiver) = std::sync::mpsc::channel();
    let shutdown = Shutdown::default();
    let (ending, file) = (shutdown.clone(), admin_file.to_owned());
    let thread = std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let collector = Collector::open(store, options).await.expect("a collector");
            collector
                .ensure_administrator(&file)
                .await
                .expect("a token");
            let collector = Arc::new(collector);
            let address = ([127, 0, 0, 1], 0).into();
            let server = Server::bind(address, Arc::clone(&collector), identity)
                .await
                .expect("a port");
            let url = format!("{scheme}://{}", server.address().expect("an address"));
            sender.send((url, collector)).expect("somebody waits");
            server.run(ending).await;
        });
    });
    let (url, collector) = receiver.recv().expect("a server");
    let admin = std::fs::read_to_string(admin_file)
        .expect("a token")
        .trim()
        .to_owned();
    Served {
        url,
        admin,
        collector,
        shutdown,
        thread,
    }
}

impl Fleet {
    /// A campaign of `probes` units in `variants` variants.
    pub(crate) fn new(
        store: Store,
        folder: &std::path::Path,
        probes: u32,
        variants: u32,
        bound: Bound,
    ) -> Self {
        Self::with(
            store,
            folder,
            Options::default(),
            request_for(probes, variants, bound),
        )
    }

    pub(crate) fn with(
        store: Store,
        folder: &std::path::Path,
        options: Options,
        (probes, new): (u32, NewCampaign),
    ) -> Self {
        let served = serve(store, options, &folder.join("admin.token"));
        let admin = client(&served.url, Some(&served.admin));
        let plan = add_program(&admin, probes);
        assert_eq!(plan, new.modules[0].plan);
        let campaign: Campaign = admin.post(paths::CAMPAIGNS, &new).expect("a campaign");
        let instances = token(&admin, campaign.id, Role::Instance);
        let reader = token(&admin, campaign.id, Role::Reader);
        Self {
            instances: client(&served.url, Some(&instances)),
            reader: client(&served.url, Some(&reader)),
            url: served.url,
            admin,
            campaign,
            collector: served.collector,
            shutdown: served.shutdown,
            server: Some(served.thread),
        }
    }

    pub(crate) fn assignment(&self, instance: u8) -> Assignment {
        let path = paths::of_assignment(InstanceId([instance; 16]), None);
        self.instances.get(&path).expect("an assignment")
    }

    pub(crate) fn send(&self, body: &[u8]) -> Answer {
        self.instances
            .post_bytes(paths::REPORTS, body)
            .expect("an answer")
    }
}

/// The request for a campaign over [`plan_of`] this number.
pub(crate) fn request_for(probes: u32, variants: u32, bound: Bound) -> (u32, NewCampaign) {
    (probes, request(plan_of(probes).0, variants, bound))
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.shutdown.end();
        if let Some(server) = self.server.take() {
            // If it panicked, the test that noticed says more.
            let _ = server.join();
        }
    }
}

/// What a run of an instance says.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) instance: u8,
    pub(crate) run: u64,
    pub(crate) sequence: u32,
    pub(crate) variant: u32,
    pub(crate) outcome: Outcome,
    pub(crate) duration: u64,
    pub(crate) hits: Vec<u32>,
    /// How often each, where that is counted.
    pub(crate) counts: Vec<u64>,
}

impl Word {
    /// A first word that a run has ended after a second.
    pub(crate) fn of(instance: u8, run: u64, hits: &[u32]) -> Self {
        Self {
            instance,
            run,
            sequence: 1,
            variant: 0,
            outcome: Outcome::Exited,
            duration: 1_000_000_000,
            hits: hits.to_vec(),
            counts: Vec::new(),
        }
    }

    /// It as a report for a campaign.
    pub(crate) fn report(&self, campaign: &Campaign) -> Vec<u8> {
        self.report_for(campaign.id, campaign.plans)
    }

    pub(crate) fn report_for(&self, campaign: CampaignId, plans: Name) -> Vec<u8> {
        let mut report = Report::empty();
        report.campaign = campaign.0;
        report.plans = plans.0.into();
        report.instance = [self.instance; 16];
        report.run = self.run.into();
        report.sequence = self.sequence.into();
        report.variant = self.variant.into();
        report.outcome = (self.outcome as u32).into();
        report.duration = self.duration.into();
        report.armed = 1.into();
        report.version = Report::version_of("0.1.0");
        let hits: Vec<U32> = self.hits.iter().map(|&hit| hit.into()).collect();
        let counts: Vec<U64> = self.counts.iter().map(|&count| count.into()).collect();
        let follows = Follows {
            hits: hits.len() as u32,
            counts: counts.len() as u32,
            ..Follows::default()
        };
        let body = [hits.as_bytes(), counts.as_bytes()].concat();
        [report.sealed_over(follows, &body).as_slice(), &body].concat()
    }
}
