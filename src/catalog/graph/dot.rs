//! The graph in DOT, which Graphviz draws.

use std::fmt::Write;

use super::{Edge, EdgeKind, Graph, Node, NodeKind, is_plain};

/// The text of a directed graph. Nodes have names of ours, so that nothing a catalog says is more than a label.
#[must_use]
pub fn dot(graph: &Graph) -> String {
    let mut text = String::from("digraph {\n");
    let _ = writeln!(text, "  label={}", quoted(&graph.label()));
    text.push_str("  labelloc=t\n  rankdir=LR\n  node [shape=box]\n");
    let mut first = 0;
    for (channel, position) in graph.channels.iter().zip(0_usize..) {
        let _ = writeln!(text, "  subgraph cluster_{position} {{");
        let _ = writeln!(text, "    label={}", quoted(&channel.label()));
        for (node, number) in channel.nodes.iter().zip(first..) {
            let label = quoted(&node.label());
            let _ = writeln!(text, "    n{number} [label={label}{}]", look(node));
        }
        for Edge { kind, from, to } in &channel.edges {
            let style = match kind {
                EdgeKind::Replaces => "solid",
                EdgeKind::Skips => "dashed",
                EdgeKind::SkipRange => "dotted",
            };
            let (from, to) = (first + from, first + to);
            let _ = writeln!(text, "    n{from} -> n{to} [style={style}]");
        }
        text.push_str("  }\n");
        first += channel.nodes.len();
    }
    text.push_str("}\n");
    text
}

fn look(node: &Node) -> String {
    let kind = match node.kind {
        NodeKind::Head => " penwidth=3",
        NodeKind::Bundle => "",
        NodeKind::Outside => " style=dashed",
        NodeKind::Range => " shape=oval",
    };
    let deprecated = if node.deprecated {
        " fontcolor=gray color=gray"
    } else {
        ""
    };
    format!("{kind}{deprecated}")
}

/// A quoted text. A backslash is the only thing that Graphviz would still read after it has replaced the numbers.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '\\' => quoted.push_str("\\\\"),
            _ if is_plain(character) => quoted.push(character),
            _ => {
                let _ = write!(quoted, "&#{};", u32::from(character));
            }
        }
    }
    quoted.push('"');
    quoted
}
