//! The graph in Mermaid, which GitHub, GitLab and many editors draw inside Markdown.

use std::fmt::Write;

use super::{Edge, EdgeKind, Graph, NodeKind, is_plain};

/// The text of a flowchart. Nodes have names of ours, so that nothing a catalog says is more than a label.
#[must_use]
pub fn mermaid(graph: &Graph) -> String {
    let mut text = String::from("flowchart LR\n");
    // Classes of nodes and, by its number, what each line looks like: Mermaid itself knows no dashes beside dots.
    let mut classes = [
        ("head", "stroke-width:3px", vec![]),
        ("outside", "stroke-dasharray:4 4", vec![]),
        ("deprecated", "fill:#ddd,color:#555", vec![]),
    ];
    let (mut first, mut lines, mut dashed) = (0, 0_usize, vec![]);
    let _ = writeln!(text, "  subgraph package[{}]", quoted(&graph.label()));
    for (channel, position) in graph.channels.iter().zip(0_usize..) {
        let label = quoted(&channel.label());
        let _ = writeln!(text, "    subgraph channel{position}[{label}]");
        for (node, number) in channel.nodes.iter().zip(first..) {
            let label = quoted(&node.label());
            let _ = match node.kind {
                NodeKind::Range => writeln!(text, "      n{number}([{label}])"),
                _ => writeln!(text, "      n{number}[{label}]"),
            };
            let of_class = [
                node.kind == NodeKind::Head,
                node.kind == NodeKind::Outside,
                node.deprecated,
            ];
            for ((_, _, nodes), _) in classes.iter_mut().zip(of_class).filter(|(_, is)| *is) {
                nodes.push(format!("n{number}"));
            }
        }
        for Edge { kind, from, to } in &channel.edges {
            let arrow = match kind {
                EdgeKind::SkipRange => "-.->",
                EdgeKind::Replaces | EdgeKind::Skips => "-->",
            };
            let _ = writeln!(text, "      n{} {arrow} n{}", first + from, first + to);
            if *kind == EdgeKind::Skips {
                dashed.push(lines.to_string());
            }
            lines += 1;
        }
        text.push_str("    end\n");
        first += channel.nodes.len();
    }
    text.push_str("  end\n");
    for (name, style, nodes) in classes {
        if !nodes.is_empty() {
            let _ = writeln!(text, "  classDef {name} {style}");
            let _ = writeln!(text, "  class {} {name}", nodes.join(","));
        }
    }
    if !dashed.is_empty() {
        let _ = writeln!(
            text,
            "  linkStyle {} stroke-dasharray:8 4",
            dashed.join(",")
        );
    }
    text
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        if is_plain(character) {
            quoted.push(character);
        } else {
            let _ = write!(quoted, "#{};", u32::from(character));
        }
    }
    quoted.push('"');
    quoted
}
