//! The report as a page: one file that asks nobody for anything, for a browser that is offline.
//!
//! ```text
//! report → words (sentences) ┐
//!        → pictures, hovers  ├→ page.css, page.js → one file
//!        → memory, calls,    │
//!          coverage (tables) ┘
//! ```
//!
//! Everything that a traced process may have chosen goes through `escape`; scripts and styles
//! are those of `page.js` and `page.css` and no others, which the page's policy names by hash.

mod calls;
mod coverage;
mod escape;
mod gap;
mod hovers;
mod memory;
mod table;
mod words;

use std::io::{self, Write};

use escape::text;

use super::picture::font::label;
use super::picture::svg::{self, Colours};
use super::picture::{Facts, Picture, Size, Subject};
use crate::report::Report;

/// The page's style.
pub const STYLE: &str = include_str!("page.css");

/// The page's script.
pub const SCRIPT: &str = include_str!("page.js");

/// What a browser may do for the page. A test holds the hashes against the files.
pub const POLICY: &str = "default-src 'none'; \
    style-src 'sha256-C1Rl0TxYZjvUjdLC1RaLd7UMfVe50kwftaZd+2MO/FA='; \
    script-src 'sha256-OoS0uCYEyuSzf57EKtR4GprQEr97Lg97BL0IAVyqtHk='; \
    base-uri 'none'; form-action 'none'";

/// Writes the page.
///
/// # Errors
/// As `out` says.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let subject = Subject::of(report);
    let facts = Facts::of(&subject, report);
    let title = format!("gmmtrace: {}", label(&report.trace.path));
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        text(&title),
    )?;
    head(report, &subject, out)?;
    let mut hovers = hovers::Hovers::new(&report.timeline);
    writeln!(out, "<section id=\"pictures\">")?;
    for &picture in Picture::ALL {
        let scene = picture.draw(&facts, Size::default());
        let drawn = svg::write(&scene, Colours::Variables);
        let drawn = drawn.replace("</svg>", &(hovers.places(&scene) + "</svg>"));
        write!(out, "<figure id=\"{}\">\n{drawn}</figure>\n", picture.name())?;
    }
    writeln!(out, "</section>")?;
    out.write_all(memory::sections(report).as_bytes())?;
    out.write_all(calls::sections(report).as_bytes())?;
    out.write_all(gap::sections(report).as_bytes())?;
    out.write_all(coverage::sections(report).as_bytes())?;
    write!(
        out,
        "<footer><p>Written by gmmtrace {} from {}.</p></footer>\n\
         <div id=\"tip\" role=\"status\" hidden></div>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        text(&label(&report.trace.path)),
        escape::script(&hovers.data()),
    )
}

fn head(report: &Report, subject: &Subject, out: &mut impl Write) -> io::Result<()> {
    write!(out, "<header>\n<h1>GPU memory of a process</h1>\n")?;
    writeln!(out, "<button id=\"theme\" type=\"button\">dark or light</button>")?;
    write!(out, "<p class=\"who\">{}</p>\n</header>\n", text(&subject.process))?;
    writeln!(out, "<section id=\"summary\">")?;
    let bound = match (report.bound, report.copies_bound) {
        (true, _) => Some("figures are bounds, not sums"),
        (false, true) => Some("figures of copies and sets are bounds, not sums"),
        (false, false) => None,
    };
    if let Some(bound) = bound {
        let doubt = report.doubt.words();
        writeln!(out, "<p class=\"alarm\">Bound: {doubt}, so {bound}.</p>")?;
    }
    writeln!(out, "<ul>")?;
    for sentence in words::sentences(report) {
        writeln!(out, "<li>{}</li>", text(&sentence))?;
    }
    write!(out, "</ul>\n</section>\n")
}
