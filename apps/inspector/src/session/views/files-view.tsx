import { runSteps } from "@throughline/core/internal";
import { diffBlock, diffLines } from "@throughline/transcript-view/internal";
import type { ComponentChildren, JSX } from "preact";
import { getJson } from "../../api.ts";
import { CodeLanguage, languageOfPath } from "../../code/code-block.tsx";
import { count, counted, sizeOf } from "../../format.ts";
import type { ChangedFileJson, FileChangeJson, ListJson } from "../../json.ts";
import { pageHref, sessionHref, type SessionPlace } from "../../router.ts";
import { EmptyState, FailedState, LoadingRows } from "../../ui/states.tsx";
import { shown } from "../../ui/text.ts";
import { viewNodes } from "../../ui/view-nodes.tsx";
import { useLoad } from "../../use-load.ts";
import { placeQuery, sessionPath } from "../session-outline.ts";

interface FilesProps {
  readonly place: SessionPlace;
  readonly query: URLSearchParams;
}

/** Lists the files that a session changed. One file opens its changes in order. */
export function FilesView({ place, query }: FilesProps): JSX.Element {
  const path = query.get("path");
  const { loaded, reload } = useLoad<ListJson<ChangedFileJson>>("files", (signal) =>
    getJson(sessionPath(place, "/changed-files"), placeQuery(place), signal),
  );
  if (loaded.state === "loading") return <LoadingRows />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  const { items } = loaded.value;
  if (items.length === 0)
    return (
      <EmptyState title="No file was changed">
        <p>No call of a file tool wrote a file. Changes by shell commands are not listed.</p>
      </EmptyState>
    );
  return (
    <div class={`files${path === null ? "" : " with-file"}`}>
      <div class="files-list">
        <h2 class="side-title">{counted(items.length, "file")}</h2>
        <ul>
          {items.map((file) => (
            <li key={file.path}>
              <FileLine file={file} place={place} isOpen={file.path === path} />
            </li>
          ))}
        </ul>
        <p class="soft note">Changes by shell commands are not listed.</p>
      </div>
      <div class="files-changes">
        {path === null ? (
          <EmptyState title="Choose a file">
            <p>Its changes stand here in their order, each with a link to its record.</p>
          </EmptyState>
        ) : (
          <Changes key={path} place={place} path={path} />
        )}
      </div>
    </div>
  );
}

interface LineProps {
  readonly file: ChangedFileJson;
  readonly place: SessionPlace;
  readonly isOpen: boolean;
}

function FileLine({ file, place, isOpen }: LineProps): JSX.Element {
  const { path, changes, failed, added, removed } = file;
  const cut = path.lastIndexOf("/") + 1;
  return (
    <a href={sessionHref(place, { v: "files", path })} aria-current={isOpen ? "true" : undefined} title={shown(path)}>
      <span class="file-name">{shown(path.slice(cut))}</span>
      <span class="file-counts">
        {added > 0 ? <span class="added-text">+{count(added)}</span> : null}
        {removed > 0 ? <span class="removed-text">−{count(removed)}</span> : null}
      </span>
      <span class="file-folder">{shown(path.slice(0, cut)) || "./"}</span>
      <span class="file-changes">
        {counted(changes, "change")}
        {failed > 0 ? <span class="error-text"> {count(failed)} failed</span> : null}
      </span>
    </a>
  );
}

function Changes({ place, path }: { readonly place: SessionPlace; readonly path: string }): JSX.Element {
  const { loaded, reload } = useLoad<ListJson<FileChangeJson> & { readonly nextSeq: number | null }>(path, (signal) =>
    getJson(sessionPath(place, "/changed-files"), { ...placeQuery(place), path }, signal),
  );
  if (loaded.state === "loading") return <LoadingRows />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  const { items, nextSeq } = loaded.value;
  return (
    <>
      <header class="file-head">
        <h2>{shown(path)}</h2>
        <a href={pageHref("search", { q: `"${path.slice(path.lastIndexOf("/") + 1)}"` })}>
          Sessions that name this file
        </a>
      </header>
      {items.map((change, index) => (
        <article key={index} class="change">
          <h3>
            <code>{shown(change.tool)}</code>
            <a href={sessionHref(place, { at: change.seq })}>#{change.seq}</a>
            {change.isError === true ? <span class="badge error">failed</span> : null}
            {change.isError === null ? <span class="badge warning">no result</span> : null}
            {change.isEverywhere ? <span class="badge plain">each place</span> : null}
            {change.what === "write" && change.before === null ? (
              <span class="badge plain">new or unknown before</span>
            ) : null}
          </h3>
          <div class="long">
            <CodeLanguage.Provider value={{ code: "", diff: languageOfPath(path) }}>
              {diffOf(change)}
            </CodeLanguage.Provider>
          </div>
        </article>
      ))}
      {nextSeq === null ? null : <p class="soft note">Later changes are in the transcript, from record {nextSeq}.</p>}
    </>
  );
}

const mostOfLine = 2000;

/** A file without line ends is one line of megabytes, which a browser lays out for seconds. */
function cutLine(line: string): string {
  const rest = line.length - mostOfLine;
  return rest <= 0 ? line : `${line.slice(0, mostOfLine)} … ${sizeOf(rest)} more in this line`;
}

function diffOf({ before, after, patch, what }: FileChangeJson): ComponentChildren {
  if (patch === null && before === null && after === null)
    return <p class="soft">The log does not say what changed.</p>;
  const edits = patch === null ? [{ before: before ?? "", after: after ?? "" }] : [];
  const lines = runSteps(diffLines({ edits, patch, isWhole: what === "write" }));
  return viewNodes([runSteps(diffBlock(lines.map(cutLine)))]);
}
