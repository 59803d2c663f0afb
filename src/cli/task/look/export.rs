//! Implementation of `windrow task export`: complete data, streamed piece by piece, whatever its size.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link, word};
use crate::output::screen;
use crate::output::table::human;
use crate::shell::Shell;
use crate::task::args::look::{ExportArgs, Exported};
use crate::task::args::make::RowForm;
use windrow_client::Request;

/// Exports failures or the log.
///
/// # Errors
/// `Conflict` if the file exists; `Failed` if it can't be written. The file appears complete or not at all.
pub(crate) async fn export(args: &ExportArgs, shell: &Shell) -> Result<Exit, Fault> {
    let out = args.out.as_deref().filter(|path| path.as_os_str() != "-");
    if let Some(path) = out.filter(|path| !args.force && path.exists()) {
        return Err(is_there(path));
    }
    let link = Link::open(&args.remote, shell)?;
    let id = link.task(&args.task).await?;
    let all = (args.what != Exported::Log).then_some("*");
    let data = args.key_column.as_deref().or(all);
    let request = Request::get(&format!("/v1/tasks/{id}/export/{}", word(&args.what)))
        .query("format", word(&row_form(args.format, &link, out)))
        .query_option("data", data)
        .query_option("csv_guard", link.look.guard.asked())
        .accept("*/*");
    deliver(&link, request, (out, args.force)).await
}

/// Returns the format of rows: that of the flag, or else of `-o` or of the file's name.
pub(crate) fn row_form(said: Option<RowForm>, link: &Link<'_>, out: Option<&Path>) -> RowForm {
    let is_csv = |path: &Path| {
        path.extension()
            .is_some_and(|ext| ext.eq_ignore_ascii_case("csv"))
    };
    match (said, link.look.form) {
        (Some(said), _) => said,
        (None, Form::Csv) => RowForm::Csv,
        (None, Form::Json | Form::Ndjson) => RowForm::Ndjson,
        (None, Form::Table | Form::Wide | Form::Name) if out.is_some_and(is_csv) => RowForm::Csv,
        (None, Form::Table | Form::Wide | Form::Name) => RowForm::Ndjson,
    }
}

/// Writes the whole answer to a file or to standard output.
pub(crate) async fn deliver(
    link: &Link<'_>,
    request: Request,
    (out, force): (Option<&Path>, bool),
) -> Result<Exit, Fault> {
    let mut download = link.client.download(request).await?;
    let Some(path) = out else {
        let mut screen = screen::Foreign::default();
        while let Some(piece) = download.chunk().await? {
            if !screen.put(&piece)? {
                break;
            }
        }
        return Ok(Exit::Ok);
    };
    let unwritten = |error: io::Error| unwritten(path, &error);
    let mut half = tempfile::NamedTempFile::new_in(folder(path)).map_err(unwritten)?;
    let (meter, mut bytes) = (link.meter(), 0_u64);
    while let Some(piece) = download.chunk().await? {
        half.write_all(&piece).map_err(unwritten)?;
        bytes = bytes.saturating_add(piece.len() as u64);
        meter.show(&format!("exporting  {}", human::bytes(bytes)));
    }
    half.as_file().sync_all().map_err(unwritten)?;
    if force {
        half.persist(path).map_err(|failed| unwritten(failed.error))?;
    } else {
        half.persist_noclobber(path)
            .map_err(|failed| match failed.error.kind() {
                io::ErrorKind::AlreadyExists => is_there(path),
                _ => unwritten(failed.error),
            })?;
    }
    drop(meter);
    link.say(&format!("wrote {} to {}", human::bytes(bytes), path.display()));
    Ok(Exit::Ok)
}

/// Returns the folder of the incomplete file: the target's own, so that a single step completes it.
fn folder(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

pub(crate) fn is_there(path: &Path) -> Fault {
    let because = format!("{} exists", path.display());
    Fault::new(Exit::Conflict, "nothing was exported", because)
        .hint("--force replaces it; or choose another --out")
}

fn unwritten(path: &Path, error: &io::Error) -> Fault {
    let because = format!("{}: {error}", path.display());
    Fault::new(Exit::Failed, "can't write the export", because)
        .hint("check the directory and its free space, or choose another --out")
}
