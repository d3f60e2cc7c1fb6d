import type { Steps } from "@throughline/core/internal";
import type { Repair } from "@throughline/history";
import type { OmitReason, RepairRule } from "@throughline/history/internal";
import type { FormatLoss } from "./format-writer.ts";

type Told = Pick<FormatLoss, "what" | "kind">;

const leftOut = (kind: string): Told => ({ what: "left-out", kind });
const changed = (kind: string): Told => ({ what: "changed", kind });
const made = (kind: string): Told => ({ what: "made", kind });

/** Null means that the change only splits or joins the same content, so nothing is lost. */
const losses: Readonly<Record<RepairRule, Told | null>> = {
  "failed-turn-dropped": leftOut("failed reply"),
  "continued-reply-cut": leftOut("part of an aborted reply"),
  "waiting-reply-left-out": leftOut("reply whose calls wait"),
  "result-of-dropped-turn": leftOut("result of a reply that is left out"),
  "result-synthesized": made("result of a call without one"),
  "orphan-result": leftOut("result without a call"),
  "duplicate-result": leftOut("second result of a call"),
  "duplicate-call": leftOut("call stored twice"),
  "result-moved": changed("place of a result"),
  "assistant-merged": null,
  "user-merged": changed("user messages joined"),
  "bootstrap-added": made("first user message"),
  "acknowledgement-added": made("reply to a summary"),
  "continuation-added": made("last user message"),
  "trailing-assistant-removed": leftOut("last reply"),
  "trailing-space-removed": changed("space at the end"),
  "reply-added": made("reply to results"),
  "empty-result-filled": made("words of an empty result"),
  "late-result-shown": changed("late result as text"),
  "system-message-shown": changed("system message as user text"),
  "signature-replaced": changed("signature of a call"),
  "signature-removed": leftOut("signature of a call"),
  "call-id-changed": changed("id of a call"),
  "tool-name-changed": changed("name of a tool"),
  "empty-text-removed": leftOut("empty text"),
  "empty-message-removed": leftOut("empty message"),
  "thinking-removed": leftOut("thinking"),
  "arguments-removed": leftOut("arguments that are no JSON"),
  "lone-surrogate-replaced": changed("half a character"),
  "image-replaced": leftOut("image"),
  "image-rewritten": changed("form of an image"),
  "image-moved": changed("place of an image"),
  "file-replaced": leftOut("attachment"),
  "unknown-block-replaced": leftOut("block"),
  "unknown-role-removed": leftOut("message of an unknown role"),
};

const omissions: Readonly<Record<OmitReason, Told>> = {
  summarized: leftOut("compacted message"),
  reset: leftOut("message before a reset"),
  edited: leftOut("message that an edit leaves out"),
  excluded: leftOut("message kept from models"),
  invalid: leftOut("invalid record"),
  "other-branch": leftOut("message of another branch"),
  window: leftOut("message outside of the window"),
};

/** A loss may occur in several renderings of the same record, so each is reported once. */
export class LossLog {
  readonly #report: (loss: FormatLoss) => void;
  readonly #kept: ReadonlySet<RepairRule>;
  readonly #seen = new Set<string>();

  /** @param kept changes of a rendering that the format ignores */
  constructor(report: (loss: FormatLoss) => void, kept: ReadonlySet<RepairRule> = new Set()) {
    this.#report = report;
    this.#kept = kept;
  }

  *repairs(repairs: readonly Repair[]): Steps<void> {
    // A message that held only thinking loses nothing else, so its removal is not reported twice.
    const thought = new Set(repairs.flatMap(({ rule, recordId }) => (rule === "thinking-removed" ? [recordId] : [])));
    for (const { rule, recordId, before } of repairs) {
      yield;
      if (rule === "empty-message-removed" && thought.has(recordId)) continue;
      const told = this.#kept.has(rule) ? null : losses[rule];
      if (told !== null) this.add({ ...told, recordId }, `${rule} ${before ?? ""}`);
    }
  }

  omitted(reason: OmitReason, records: number): void {
    if (records > 0) this.#report({ ...omissions[reason], recordId: null, records });
  }

  /** A null origin means that the loss concerns the whole session. */
  tell(what: FormatLoss["what"], kind: string, origin: { readonly stored: { readonly id: string } } | null): void {
    this.add({ what, kind, recordId: origin?.stored.id ?? null });
  }

  /** @param detail distinguishes losses of one kind in one record */
  add(loss: FormatLoss, detail: string = ""): void {
    const name = `${loss.what} ${loss.kind} ${loss.recordId ?? ""} ${detail}`;
    if (this.#seen.has(name)) return;
    this.#seen.add(name);
    this.#report(loss);
  }
}
