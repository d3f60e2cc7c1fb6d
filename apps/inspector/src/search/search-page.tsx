import type { JSX } from "preact";
import { getJson } from "../api.ts";
import { count, counted } from "../format.ts";
import type { FoundJson, HitGroupJson } from "../json.ts";
import { hrefWith, navigate } from "../router.ts";
import { EmptyState, FailedState, LoadingRows } from "../ui/states.tsx";
import { useLoad } from "../use-load.ts";
import { HitGroup } from "./hit-group.tsx";

const steps = 30;
const mostGroups = 300;

/** Finds words in the texts of all sessions, grouped by session. */
export function SearchPage({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const words = query.get("q") ?? "";
  const role = query.get("role") ?? "";
  const limit = Math.min(mostGroups, Math.max(steps, Number(query.get("limit")) || steps));
  const { loaded, reload } = useLoad<FoundJson<HitGroupJson>>(
    words.trim() === "" ? null : `${words} ${role} ${limit}`,
    (signal) => getJson("/search", { q: words, group: "session", limit, role }, signal),
    { keeps: true },
  );
  const lag = useLoad<{ readonly records: number }>("lag", (signal) => getJson("/search/lag", {}, signal)).loaded;
  return (
    <main class="page search-page" id="main">
      <h1>Search</h1>
      <div class="filters" role="group" aria-label="Filters">
        <select
          class={`field${role === "" ? "" : " set"}`}
          aria-label="Who said it"
          value={role}
          onChange={({ currentTarget }) => navigate(hrefWith({ role: currentTarget.value || null }))}
        >
          <option value="">Anybody</option>
          <option value="user">User</option>
          <option value="assistant">Assistant</option>
          <option value="toolResult">Tools</option>
        </select>
        <p class="soft">
          {loaded.state === "done" && words.trim() !== "" ? foundText(loaded.value) : ""}
          {lag.state === "done" && lag.value.records > 0
            ? ` · indexing: ${counted(lag.value.records, "record")} left`
            : ""}
        </p>
      </div>
      {words.trim() === "" ? <SearchHelp /> : <Found loaded={loaded} words={words} reload={reload} />}
      {loaded.state === "done" && loaded.value.items.length === limit && limit < mostGroups ? (
        <a class="button" href={hrefWith({ limit: limit + steps })}>
          Show more sessions
        </a>
      ) : null}
    </main>
  );
}

function foundText({ items, total = items.length, isTotalExact = true }: FoundJson<HitGroupJson>): string {
  return `${count(items.length)} of ${counted(total, "session")}${isTotalExact ? "" : " or more"} shown`;
}

interface FoundProps {
  readonly loaded: ReturnType<typeof useLoad<FoundJson<HitGroupJson>>>["loaded"];
  readonly words: string;
  readonly reload: () => void;
}

function Found({ loaded, words, reload }: FoundProps): JSX.Element {
  if (loaded.state === "loading") return <LoadingRows rows={9} />;
  if (loaded.state === "failed") return <FailedState error={loaded.error} reload={reload} />;
  if (loaded.value.items.length === 0)
    return (
      <EmptyState title="Nothing found">
        <p>
          All words must occur in one record. With <code>*</code> at its end, a word finds all that start with it.
        </p>
      </EmptyState>
    );
  return (
    <div class="groups">
      {loaded.value.items.map((group) => (
        <HitGroup key={`${group.session.agentId} ${group.session.sessionId}`} group={group} words={words} level="h2" />
      ))}
    </div>
  );
}

function SearchHelp(): JSX.Element {
  return (
    <EmptyState title="Search the texts of all sessions">
      <dl class="search-help">
        <dt>
          <code>login bug</code>
        </dt>
        <dd>both words in one record</dd>
        <dt>
          <code>"login bug"</code>
        </dt>
        <dd>the words stand together</dd>
        <dt>
          <code>auth*</code>
        </dt>
        <dd>words that start with auth</dd>
      </dl>
    </EmptyState>
  );
}
