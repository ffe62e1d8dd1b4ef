//! Traces of runs, as a collector gets them.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::support::{Act, Finished, Folder, Request, Server, consensus, http};

const ASK: [&str; 7] = ["run", "--roleset", "solver_checker", "--mock", "--answer", "4", "How much is 2+2?"];

/// A collector that takes everything.
fn collector() -> Server {
    Server::start(|_: &Request| vec![Act::Send(http("200 OK", "", b""))])
}

/// Returns the spans that a collector got, request by request.
fn received(collector: &Server) -> Vec<Vec<Span>> {
    let spans = |request: &Request| {
        let all = ExportTraceServiceRequest::decode(request.bytes.as_slice()).unwrap();
        let scopes = all.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    };
    collector.requests().iter().map(spans).collect()
}

/// The spans contain no text of the task.
#[test]
fn ended_run_is_sent_once() {
    let (folder, collector) = (Folder::new(), collector());
    Finished::of(consensus(&folder).args(ASK).args(["--otlp", &collector.url()])).exits(0);
    let requests = collector.requests();
    assert!(requests[0].path.ends_with("/v1/traces"), "{}", requests[0].path);
    assert_eq!(requests[0].header("content-type").as_deref(), Some("application/x-protobuf"));
    let sent = received(&collector);
    let [spans] = sent.as_slice() else { panic!("one request: {}", sent.len()) };
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let agents = ["invoke_agent Solver", "invoke_agent Checker"];
    assert_eq!(names, [&["invoke_workflow solver_checker"], &agents[..], &["chat mock"; 4]].concat());
    assert!(!format!("{spans:?}").contains("2+2"), "texts are sent only if they are wanted");
    // A run that has ended sends nothing again.
    Finished::of(consensus(&folder).args(["resume", "--last", "--otlp", &collector.url()])).exits(0);
    assert_eq!(received(&collector).len(), 1);
}

#[test]
fn texts_are_sent_if_they_are_wanted() {
    let (folder, collector) = (Folder::new(), collector());
    Finished::of(consensus(&folder).args(ASK).args(["--otlp", &collector.url(), "--otlp-content"])).exits(0);
    let sent = format!("{:?}", received(&collector));
    assert!(sent.contains("gen_ai.input.messages") && sent.contains("2+2"), "{sent}");
}

#[test]
fn missing_collector_changes_no_run() {
    let folder = Folder::new();
    let ended = Finished::of(consensus(&folder).args(ASK).args(["--otlp", "http://127.0.0.1:9"])).exits(0);
    assert_eq!(ended.stdout.trim(), "4");
    assert!(ended.stderr.contains("did not take the spans of a run"), "{}", ended.stderr);
}

/// A wrong address, a password in it, or a wrong header is refused before any run begins.
#[test]
fn bad_collector_address_is_refused() {
    let folder = Folder::new();
    for wrong in ["localhost:4318", "http://user:secret@localhost:4318"] {
        let refused = Finished::of(consensus(&folder).args(ASK).args(["--otlp", wrong])).exits(2);
        assert!(refused.stderr.contains("such as http://localhost:4318"), "{}", refused.stderr);
        assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
    }
    let mut command = consensus(&folder);
    command.args(ASK).args(["--otlp", "http://localhost:4318"]).env("OTEL_EXPORTER_OTLP_HEADERS", "secret");
    let refused = Finished::of(&mut command).exits(2);
    assert!(refused.stderr.contains("OTEL_EXPORTER_OTLP_HEADERS is not NAME=VALUE"), "{}", refused.stderr);
    assert!(!folder.path().join("runs").exists(), "no run began");
}
