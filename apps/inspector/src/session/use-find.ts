import { getJson } from "../api.ts";
import type { FoundJson, HitJson } from "../json.ts";
import { hrefWith, navigate, type SessionPlace } from "../router.ts";
import { useLoad } from "../use-load.ts";

export interface Find {
  readonly words: string;
  readonly state: "idle" | "loading" | "done" | "failed";
  /** Numbers the hit that the address names, from 1; 0 while it names none. */
  readonly at: number;
  readonly total: number;
  readonly isExact: boolean;
  readonly search: (words: string) => void;
  readonly step: (by: 1 | -1) => void;
}

const mostHits = 1000;

/** Finds words in one session. The hits come in the order of the records. */
export function useFind(
  place: SessionPlace,
  sessionId: string,
  query: URLSearchParams,
  jump: (seq: number) => void,
): Find {
  const words = query.get("q") ?? "";
  const { loaded } = useLoad<FoundJson<HitJson>>(
    words.trim() === "" ? null : words,
    async (signal) => {
      await new Promise((done) => setTimeout(done, 150));
      return getJson("/search", { q: words, sessionId, agent: place.agent, limit: mostHits }, signal);
    },
    { keeps: true },
  );
  const isSearching = words.trim() !== "";
  const value = isSearching && loaded.state === "done" ? loaded.value : null;
  const seqs = value === null ? [] : [...new Set(value.items.map(({ seq }) => seq))].toSorted((a, b) => a - b);
  const current = Number(query.get("at"));
  const at = seqs.indexOf(current) + 1;
  return {
    words: isSearching ? words : "",
    state: isSearching ? loaded.state : "idle",
    at,
    total: seqs.length,
    isExact: value?.isTotalExact ?? seqs.length < mostHits,
    search: (text) => navigate(hrefWith({ q: text }), { replace: true }),
    step: (by) => {
      if (seqs.length === 0) return;
      // An address that names no hit has a record, and the step goes to the first hit behind it.
      const next = at === 0 ? nextFrom(seqs, current, by) : (at - 1 + by + seqs.length) % seqs.length;
      const seq = seqs[next];
      if (seq === undefined) return;
      navigate(hrefWith({ at: seq }), { replace: true });
      if (seq === current) jump(seq);
    },
  };
}

function nextFrom(seqs: readonly number[], seq: number, by: 1 | -1): number {
  const next = by === 1 ? seqs.findIndex((each) => each >= seq) : seqs.findLastIndex((each) => each <= seq);
  return next === -1 ? (by === 1 ? 0 : seqs.length - 1) : next;
}
