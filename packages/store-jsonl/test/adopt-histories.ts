import { existsSync } from "node:fs";
import { sessionRef, type SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createRandomChoices, type RandomChoices } from "../../../tools/histories/random-choices.ts";
import { type Files, nodeFiles } from "../src/files.ts";
import { OpenClawFolder } from "./openclaw-folder.ts";
import { userDraft } from "./session-fixture.ts";

interface ModelSession {
  readonly id: string;
  readonly key: string;
  readonly fields: Map<string, string>;
  readonly texts: string[];
}

interface Model {
  readonly active: Map<string, ModelSession>;
  readonly archived: Map<string, ModelSession>;
}

const keys = ["one", "two", "three"].map((name) => `agent:main:telegram:direct:${name}`);
const fieldNames = ["label", "model", "channel", "theirOwn"];

/**
 * Two programs use one folder in turn, never at once: this store, whose handles are closed or killed, and another
 * program, which knows what sessions.json and the transcripts say. Returns the first difference from the model.
 */
export async function playTurns({
  root,
  seed,
  turns,
}: {
  readonly root: string;
  readonly seed: number;
  readonly turns: number;
}): Promise<string | null> {
  const choices = createRandomChoices(seed);
  const model: Model = { active: new Map(), archived: new Map() };
  const folder = new OpenClawFolder(root);
  let count = 0;
  for (let turn = 0; turn < turns; turn++) {
    const isKilled = choices.isTrue(0.3);
    const files = mortalFiles();
    const store = createJsonlStore({ root, files, derivedDelayMs: Infinity });
    for (let step = 0; step < 3; step++) await stepOfOurs(store, model, choices, ++count);
    if (isKilled) files.kill();
    await store.close();
    // What the other program changes in an entry that it replaces in the same turn is in no file afterwards.
    const before = new Map([...model.active.values()].map(({ id, fields }) => [id, new Map(fields)]));
    for (let step = 0; step < 3; step++) stepOfTheirs(folder, model, choices, ++count, before);
    for (const { id, fields } of model.archived.values()) if (before.has(id)) fields.clear();
    for (const [id, known] of before)
      for (const [field, value] of known) model.archived.get(id)?.fields.set(field, value);
    const problem = await difference(root, model);
    if (problem !== null) return `turn ${turn}: ${problem}`;
  }
  return null;
}

/** This computer's files, until they are killed: from then on a handle can only close what it has open. */
export function mortalFiles(): Files & { kill(): void } {
  let isKilled = false;
  const entries = Object.entries(nodeFiles).map(([name, call]: [string, (...given: never[]) => unknown]) => [
    name,
    (...given: never[]) => {
      if (isKilled && name !== "close") throw Object.assign(new Error("killed"), { code: "EIO" });
      return call(...given);
    },
  ]);
  return { ...(Object.fromEntries(entries) as Files), kill: () => void (isKilled = true) };
}

async function stepOfOurs(store: SessionStore, model: Model, choices: RandomChoices, count: number): Promise<void> {
  const key = choices.of(keys);
  const ref = sessionRef({ key });
  const known = model.active.get(key);
  if (known === undefined) {
    const begun = beginInModel(model, key, `ours${count}`);
    await store.save(ref, { sessionId: begun.id }, { ifRevision: null });
    return;
  }
  const kind = choices.of(["say", "say", "patch", "entry", "reset", "archive"]);
  const field = choices.of(fieldNames);
  if (kind === "say" || kind === "patch") {
    await store.append(ref, [userDraft(`t${count}`)], kind === "patch" ? { entry: { [field]: `v${count}` } } : {});
    known.texts.push(`t${count}`);
  } else if (kind === "entry") await store.append(ref, [], { entry: { [field]: `v${count}` } });
  if (kind === "patch" || kind === "entry") known.fields.set(field, `v${count}`);
  if (kind === "reset") {
    const revision = (await store.load(ref))?.revision ?? null;
    archiveInModel(model, key);
    const begun = beginInModel(model, key, `ours${count}`);
    await store.save(ref, { sessionId: begun.id }, { ifRevision: revision });
  } else if (kind === "archive") {
    archiveInModel(model, key);
    await store.remove(ref);
  }
}

function stepOfTheirs(
  folder: OpenClawFolder,
  model: Model,
  choices: RandomChoices,
  count: number,
  before: ReadonlyMap<string, unknown>,
): void {
  const key = choices.of(keys);
  const known = model.active.get(key);
  const theirs = folder.entries[key];
  // After a kill sessions.json may lag behind: the other program then does not know what this store did.
  if (theirs?.["sessionId"] !== known?.id) return;
  if (known === undefined) {
    const text = choices.isTrue(0.5) ? `t${count}` : null;
    const begun = beginInModel(model, key, `theirs${count}`);
    folder.begin(key, begun.id, text);
    if (text !== null) begun.texts.push(text);
    return;
  }
  const name = `${known.id}.jsonl`;
  const kind = choices.of(["say", "say", "set", "unset", "reset", "delete"]);
  const field = choices.of(fieldNames);
  if (kind === "say") {
    folder.say(name, known.id, `t${count}`);
    known.texts.push(`t${count}`);
  } else if (kind === "set") {
    folder.edit(key, { [field]: `v${count}` });
    known.fields.set(field, `v${count}`);
  } else if (kind === "unset") {
    // A field that the file does not have is none that it could remove.
    if (theirs?.[field] === undefined) return;
    folder.edit(key, {}, [field]);
    known.fields.delete(field);
    // A session that this store never knew has no key when its entry is gone. An empty sessions.json counts as lost.
  } else if (before.has(known.id) && (kind === "reset" || Object.keys(folder.entries).length > 1)) {
    const isThere = existsSync(folder.path(name));
    if (isThere && choices.isTrue(0.7)) folder.putAside(name, kind === "reset" ? "reset" : "deleted");
    archiveInModel(model, key);
    if (kind === "delete") return folder.drop(key);
    const begun = beginInModel(model, key, `theirs${count}`);
    const text = choices.isTrue(0.5) ? `t${count}` : null;
    folder.begin(key, begun.id, text);
    if (text !== null) begun.texts.push(text);
  }
}

function beginInModel(model: Model, key: string, id: string): ModelSession {
  const begun: ModelSession = { id, key, fields: new Map(), texts: [] };
  model.active.set(key, begun);
  return begun;
}

function archiveInModel(model: Model, key: string): void {
  const known = model.active.get(key);
  if (known === undefined) return;
  model.active.delete(key);
  model.archived.set(known.id, known);
}

async function difference(root: string, model: Model): Promise<string | null> {
  await using store = createJsonlStore({ root });
  const found = new Map<string, string>();
  for (const { ref, sessionId, entry, archived } of (await store.list({ state: "any" })).sessions) {
    const fields = fieldNames.flatMap((field) => (entry[field] === undefined ? [] : [[field, entry[field]]]));
    const texts: unknown[] = [];
    for await (const { records } of store.read(ref))
      for (const { record } of records)
        if (record.type === "message") texts.push((record["message"] as { readonly content: unknown }).content);
    found.set(sessionId, JSON.stringify([ref.key, archived, fields, texts]));
  }
  const expected = new Map<string, string>();
  for (const [isArchived, sessions] of [
    [false, model.active],
    [true, model.archived],
  ] as const)
    for (const { id, key, fields, texts } of sessions.values()) {
      const known = fieldNames.flatMap((field) => (fields.has(field) ? [[field, fields.get(field)]] : []));
      expected.set(id, JSON.stringify([key, isArchived, known, texts]));
    }
  for (const id of new Set([...found.keys(), ...expected.keys()]))
    if (found.get(id) !== expected.get(id))
      return `${id}: found ${found.get(id) ?? "nothing"}, expected ${expected.get(id) ?? "nothing"}`;
  return null;
}
