import type { JSX } from "preact";
import { getJson } from "../api.ts";
import { counted } from "../format.ts";
import type { FoundJson, HitGroupJson } from "../json.ts";
import { pageHref } from "../router.ts";
import { HitGroup } from "../search/hit-group.tsx";
import { useLoad } from "../use-load.ts";

const mostGroups = 8;

/** Shows below the names the sessions whose texts hold the words. */
export function TextHits({ words }: { readonly words: string }): JSX.Element | null {
  const { loaded } = useLoad<FoundJson<HitGroupJson>>(
    words,
    async (signal) => {
      await new Promise((done) => setTimeout(done, 200));
      return getJson<FoundJson<HitGroupJson>>("/search", { q: words, group: "session", limit: mostGroups }, signal);
    },
    { keeps: true },
  );
  if (loaded.state === "loading") return <p class="soft pad">Searching the texts …</p>;
  // The names above are still true: the texts say why they are missing.
  if (loaded.state === "failed") return <p class="soft pad">The texts were not searched: {loaded.error.message}</p>;
  const { items, total = items.length } = loaded.value;
  if (items.length === 0) return <p class="soft pad">No text holds these words.</p>;
  return (
    <section class="text-hits" aria-label="In the texts">
      <h2>
        In the texts <a href={pageHref("search", { q: words })}>{counted(total, "session")}</a>
      </h2>
      {items.map((group) => (
        <HitGroup key={group.session.sessionId} group={group} words={words} level="h3" />
      ))}
    </section>
  );
}
