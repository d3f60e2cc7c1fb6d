import { createWorkSlices, isFields } from "@throughline/core/internal";
import type { ReplacedSecrets } from "@throughline/transcript-view/internal";
import { createSecretFinder, type NameTexts, type SecretFinder, textsIn } from "../secret-texts.ts";
import { homeFolder, type OwnPattern, ownSecrets, planned, type PlannedReplacement, withoutHome } from "./own-rules.ts";

/** A rule reads at most this much at once, so that no search holds up a server. */
const windowCharacters = 96 * 1024;
/** A secret that a window cuts lies whole in the next one. */
const overlapCharacters = 16 * 1024;
/** Shorter texts may be words, and are replaced in their own record only. */
const leastSharedCharacters = 12;
const mostShared = 1000;

interface OwnedText {
  readonly seq: number;
  readonly text: string;
}

/** Replaces secrets in the records of one session. Every record is read once to find them, before the first is written. */
export class SecretScan {
  /** Null searches for the expressions of the user alone. */
  readonly #finder: SecretFinder | null;
  readonly #patterns: readonly OwnPattern[];
  readonly #home: string;
  /** All work of a scan has one measure of time, because slices behind each other would add up. */
  readonly #slices = createWorkSlices();
  readonly #counts = new Map<string, number>();
  readonly #bySeq = new Map<number, readonly PlannedReplacement[]>();
  readonly #shared = new Map<string, PlannedReplacement>();

  private constructor(finder: SecretFinder | null, patterns: readonly OwnPattern[], home: string) {
    this.#finder = finder;
    this.#patterns = patterns;
    this.#home = home;
  }

  /** @param hasRules false searches for the expressions of the user alone */
  static async create(patterns: readonly OwnPattern[], home: string, hasRules: boolean): Promise<SecretScan> {
    return new SecretScan(hasRules ? await createSecretFinder() : null, patterns, home);
  }

  /** Counts what was found by rule, the most frequent first. */
  get counts(): readonly ReplacedSecrets[] {
    return Array.from(this.#counts, ([what, count]) => ({ what, count })).toSorted(
      (one, other) => other.count - one.count || one.what.localeCompare(other.what),
    );
  }

  /** Finds the secrets of some values, each of a record or, with seq 0, of the entry. */
  async find(values: readonly { readonly seq: number; readonly value: unknown }[]): Promise<void> {
    const slices = this.#slices;
    const owned: OwnedText[] = [];
    for (const { seq, value } of values) {
      for (const text of textsIn(value, nameTexts)) for (const part of windowsOf(text)) owned.push({ seq, text: part });
      await slices.next();
    }
    const found = await this.#search(owned);
    for (const [seq, secrets] of found) this.#keep(seq, [...secrets.values()]);
  }

  async #search(owned: readonly OwnedText[]): Promise<ReadonlyMap<number, ReadonlyMap<string, PlannedReplacement>>> {
    const slices = this.#slices;
    const found = new Map<number, Map<string, PlannedReplacement>>();
    const add = (seq: number, each: PlannedReplacement): void => {
      const own = found.get(seq) ?? new Map<string, PlannedReplacement>();
      found.set(seq, own);
      if (!own.has(each.text)) own.set(each.text, each);
    };
    for (const batch of batchesOf(owned)) {
      const secrets = (await this.#finder?.find(batch.map(({ text }) => text))) ?? [];
      for (const [index, { seq, text }] of batch.entries()) {
        const known = secrets[index] ?? [];
        for (const secret of known) add(seq, planned(kindOf(secret.rule), secret.text));
        if (this.#finder !== null)
          for (const secret of ownSecrets(text))
            if (!known.some((each) => each.text.includes(secret.text))) add(seq, secret);
        for (const pattern of this.#patterns)
          for (const secret of pattern.find(text)) {
            add(seq, secret);
            await slices.next();
          }
        if (this.#finder !== null) this.#count(homeFolder, withoutHome(text, this.#home).count);
        await slices.next();
      }
    }
    return found;
  }

  #keep(seq: number, secrets: readonly PlannedReplacement[]): void {
    this.#bySeq.set(seq, secrets);
    for (const secret of secrets) {
      this.#count(secret.what, 1);
      if (secret.text.length >= leastSharedCharacters && this.#shared.size < mostShared)
        this.#shared.set(secret.text, secret);
    }
  }

  #count(what: string, count: number): void {
    if (count > 0) this.#counts.set(what, (this.#counts.get(what) ?? 0) + count);
  }

  /** Lets other work run when it is due. */
  async pause(): Promise<void> {
    await this.#slices.next();
  }

  /** Returns the value without secrets: those of its record, and those of others that are long enough. */
  replaced<Value>(seq: number, value: Value): Value {
    const own = this.#bySeq.get(seq) ?? [];
    // A text may be a part of another one.
    const all = [...own, ...this.#shared.values()].toSorted((one, other) => other.text.length - one.text.length);
    return mapTexts(value, (text) => {
      const shown = all.reduce(
        (kept, { text: secret, replacement }) =>
          kept.includes(secret) ? kept.replaceAll(secret, () => replacement) : kept,
        text,
      );
      return this.#finder === null ? shown : withoutHome(shown, this.#home).text;
    }) as Value;
  }
}

/** The data of an image is no text, and a rule could find anything in it. */
function isImageData(name: string, parent: Readonly<Record<string, unknown>>): boolean {
  return name === "data" && (parent["type"] === "image" || parent["type"] === "base64");
}

const nameTexts: NameTexts = (name, member, parent) => {
  if (isImageData(name, parent)) return null;
  // A rule reads the name of a value beside it.
  return typeof member === "string" && /authorization$/i.test(name) ? [name, `authorization: ${member}`] : [name];
};

function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((member) => mapTexts(member, change));
  if (!isFields(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      change(name),
      isImageData(name, value) ? member : mapTexts(member, change),
    ]),
  );
}

function* windowsOf(text: string): Generator<string, void, void> {
  if (text.trim() === "") return;
  for (let at = 0; ; at += windowCharacters - overlapCharacters) {
    yield text.slice(at, at + windowCharacters);
    if (at + windowCharacters >= text.length) return;
  }
}

function* batchesOf(owned: readonly OwnedText[]): Generator<readonly OwnedText[]> {
  let batch: OwnedText[] = [];
  let length = 0;
  for (const each of owned) {
    if (batch.length > 0 && length + each.text.length > windowCharacters) {
      yield batch;
      batch = [];
      length = 0;
    }
    batch.push(each);
    length += each.text.length;
  }
  if (batch.length > 0) yield batch;
}

const kinds: Readonly<Record<string, string>> = {
  "1password": "1Password token",
  anthropic: "Anthropic key",
  aws: "AWS key",
  basicauth: "password in a URL",
  "database-connection-string": "database password",
  docker: "Docker token",
  gcp: "Google Cloud key",
  github: "GitHub token",
  gitlab: "GitLab token",
  npm: "npm token",
  openai: "OpenAI key",
  privatekey: "private key",
  sendgrid: "SendGrid key",
  slack: "Slack token",
  stripe: "Stripe key",
};

function kindOf(rule: string): string {
  return kinds[rule] ?? `${rule} token`;
}
