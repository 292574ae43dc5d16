//! Reports that go to files of their own: pictures and pages, beside the log under its name
//! unless a file is named.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::output::{Output, target};
use crate::Error;
use crate::render::picture::{Facts, Picture, Size, Subject, Theme, png, svg};
use crate::render::{clean, html};
use crate::report::Report;

/// What a file shows, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The page.
    Page,
    /// A picture as SVG.
    Svg(Picture),
    /// A picture as PNG.
    Png(Picture),
}

impl Content {
    /// The end of its file's name, without a dot before it.
    fn ending(self) -> String {
        match self {
            Self::Page => "html".to_owned(),
            Self::Svg(picture) => format!("{}.svg", picture.name()),
            Self::Png(picture) => format!("{}.png", picture.name()),
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is made of each log.
    pub contents: Vec<Content>,
    /// The one file, if it was named.
    pub output: Option<PathBuf>,
    /// Whether files that exist are overwritten.
    pub force: bool,
    /// Size of pictures.
    pub size: Size,
    /// Theme of pictures.
    pub theme: Theme,
}

/// A log, and the files that are made of it.
pub struct Job {
    /// The log.
    pub log: PathBuf,
    files: Vec<(PathBuf, Content)>,
}

impl Plan {
    /// What is made of `logs`. Every file is looked at before the first is written.
    ///
    /// # Errors
    /// When a file exists, is a log, or would be written twice.
    pub fn jobs(&self, logs: &[PathBuf]) -> Result<Vec<Job>, Error> {
        if let (Some(path), true) = (&self.output, logs.len() * self.contents.len() > 1) {
            let text = format!("{}: one file cannot hold them all; leave out -o", path.display());
            return Err(Error::Said(text));
        }
        let jobs = logs.iter().map(|log| {
            let file = |&content| {
                let path = self.output.clone().unwrap_or_else(|| beside(log, content));
                (path, content)
            };
            Job { log: log.clone(), files: self.contents.iter().map(file).collect() }
        });
        let jobs: Vec<Job> = jobs.collect();
        let mut all: Vec<&Path> =
            jobs.iter().flat_map(|job| &job.files).map(|(path, _)| path.as_path()).collect();
        for path in all.iter().filter_map(|path| target(Some(path))) {
            self.check(path, logs)?;
        }
        all.sort_unstable();
        match all.windows(2).find(|pair| pair.first() == pair.last()).and_then(|pair| pair.first())
        {
            Some(path) => Err(Error::Said(format!("{}: would be written twice", path.display()))),
            None => Ok(jobs),
        }
    }

    fn check(&self, path: &Path, logs: &[PathBuf]) -> Result<(), Error> {
        let real = fs::canonicalize(path).ok();
        let same = |log: &PathBuf| real.is_some() && fs::canonicalize(log).ok() == real;
        if logs.iter().any(same) {
            let text = format!("{}: is an input, and would be overwritten", path.display());
            return Err(Error::Said(text));
        }
        if !self.force && fs::symlink_metadata(path).is_ok() {
            return Err(Error::Exists(path.to_path_buf()));
        }
        Ok(())
    }

    /// Writes the files of a job and tells their names on stderr.
    ///
    /// # Errors
    /// When one cannot be drawn or written.
    pub fn write(&self, job: &Job, report: &Report, logs: &[PathBuf]) -> Result<(), Error> {
        let subject = Subject::of(report);
        let facts = Facts::of(&subject, report);
        for (path, content) in &job.files {
            let bytes = match content {
                Content::Page => {
                    let mut page = Vec::new();
                    html::write(report, &mut page).map_err(Error::Output)?;
                    page
                }
                Content::Svg(picture) => {
                    let scene = picture.draw(&facts, self.size);
                    svg::write(&scene, svg::Colours::Of(self.theme)).into_bytes()
                }
                Content::Png(picture) => png::write(&picture.draw(&facts, self.size), self.theme)?,
            };
            let mut output = Output::open(target(Some(path)), self.force, logs)?;
            let written = output.writer().write_all(&bytes);
            written.map_err(|error| output.failed(error))?;
            output.finish()?;
            if target(Some(path)).is_some() {
                // Whoever does not read stderr loses nothing.
                let path = clean(&path.display().to_string());
                let _ = writeln!(io::stderr().lock(), "gmmtrace: wrote {path}");
            }
        }
        Ok(())
    }
}

/// `x.gmmt` becomes `x.timeline.svg`.
fn beside(log: &Path, content: Content) -> PathBuf {
    let mut name = match log.extension() {
        Some(end) if end == "gmmt" => log.file_stem(),
        _ => log.file_name(),
    }
    .unwrap_or_default()
    .to_owned();
    name.push(".");
    name.push(content.ending());
    log.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lies_beside_its_log_under_its_name() {
        let name = |log: &str, content| beside(Path::new(log), content).display().to_string();
        let timeline = Content::Svg(Picture::Timeline);
        assert_eq!(name("/a/x.1.gmmt", timeline), "/a/x.1.timeline.svg");
        assert_eq!(name("x.gmmt.1", Content::Page), "x.gmmt.1.html");
        assert_eq!(name("x", Content::Png(Picture::Peak)), "x.peak.png");
    }
}
