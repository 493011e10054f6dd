//! The paths of a run as one JSON document (schema tomo.paths/1).

use serde_json::{Value, json};
use tomo_program::{Address, FunctionView, Graphs, ModelError};
use tomo_wire::paths::Asked;

use super::Followed;
use crate::{FunctionPaths, PathBreak, PathEnd};

/// All functions that please `is_asked`.
///
/// # Errors
/// Where the model is damaged.
pub fn document(
    followed: &Followed,
    is_asked: &dyn Fn(&FunctionView<'_>) -> bool,
) -> Result<Value, ModelError> {
    let graphs = followed.graphs()?;
    let functions = followed.counts.functions.iter().filter_map(|function| {
        let view = graphs.function(function.function)?;
        is_asked(&view).then(|| of_function(followed, &graphs, &view, function))
    });
    let left = followed.counts.left.iter().filter_map(|(id, reason)| {
        let view = graphs.function(*id)?;
        Some(json!({
            "name": view.title(),
            "address": shown(view.entry()),
            "reason": reason.words(),
        }))
    });
    let contradictory = followed.counts.contradictory.iter();
    Ok(json!({
        "schema": "tomo.paths/1",
        "module": followed.module,
        "functions": functions.collect::<Vec<_>>(),
        "left_out": left.collect::<Vec<_>>(),
        "contradictory": contradictory.map(|entry| shown(Address(*entry))).collect::<Vec<_>>(),
        "lost_threads": followed.lost,
        "forks": followed.forks,
    }))
}

fn of_function(
    followed: &Followed,
    graphs: &Graphs<'_>,
    view: &FunctionView<'_>,
    function: &FunctionPaths,
) -> Value {
    let start = |id| graphs.block(id).map(|block| shown(block.address()));
    let paths = function.ran.iter().chain(&function.idle).map(|path| {
        let blocks = path.blocks.iter().map(|block| start(*block));
        let lines = path.blocks.iter().map(|block| {
            let source = graphs.block(*block)?.source()?;
            Some(source.line)
        });
        json!({
            "count": path.count,
            "blocks": blocks.collect::<Vec<_>>(),
            "lines": lines.collect::<Vec<_>>(),
            "end": match path.end {
                PathEnd::Exit => None,
                PathEnd::Edge(block) => start(block),
            },
        })
    });
    let breaks = function.breaks.iter().map(|(edge, kind)| {
        json!({
            "from": start(edge.from),
            "to": shown(edge.address),
            "path": match kind {
                PathBreak::Edge => "edge",
                PathBreak::Before => "before",
                PathBreak::Cut => "cut",
            },
        })
    });
    json!({
        "name": view.title(),
        "address": shown(view.entry()),
        "possible": function.possible,
        "asked": match function.asked {
            Some(Asked::All) => "all",
            Some(Asked::Named) => "named",
            Some(Asked::Others) => "unseen",
            None => "not the same in all runs",
        },
        "started": function.started,
        "completed": function.started.map(|_| function.completed()),
        "cut": followed.cut(function),
        "paths": paths.collect::<Vec<_>>(),
        "breaks": breaks.collect::<Vec<_>>(),
        "unfollowed": function.unfollowed.iter().map(|block| start(*block)).collect::<Vec<_>>(),
    })
}

fn shown(address: Address) -> String {
    format!("{:#x}", address.0)
}
