import type { SessionRef } from "@throughline/core";
import { onePiece } from "@throughline/core/internal";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import type pg from "pg";
import type { LayoutName } from "../src/layout.ts";
import { giveMain, readmeGrants } from "./readme-grants.ts";
import { newSchema, withClient } from "./store-under-test.ts";

/** Nothing that a role of the agent `main` is told, in an answer, a message or a notice, has one of these. */
export const foreign: RegExp = /Zanzibar|5a616e7a69626172|other|theirs|their|somebody/i;

export const own: SessionRef = { namespace: "", agentId: "main", key: "agent:main:own" };
export const theirs: SessionRef = { namespace: "", agentId: "other", key: "agent:other:one" };

function say(content: string): { readonly type: string; readonly message: object } {
  return { type: "message", message: { role: "user", content } };
}

/** A session with something in every table of the store. */
async function fillAgent(store: PostgresStore, ref: SessionRef, text: string): Promise<void> {
  const id = ref.agentId === "main" ? "mine" : "theirs";
  await store.save(ref, { sessionId: id, label: text }, { ifRevision: null });
  await store.append(ref, [say(`${text} ${"x".repeat(300_000)}`), say(text)], {
    idempotencyKey: `key of ${id}`,
    entry: { model: text },
  });
  const bytes = new TextEncoder().encode(`file of ${text}`);
  const { id: fileId } = await store.files.put(ref, onePiece(bytes));
  await store.append(ref, [{ type: "message", message: { role: "user", content: [{ type: "file", fileId }] } }]);
  const gone = { ...ref, key: `agent:${ref.agentId}:gone` };
  const importedFrom = { format: "pi", sessionId: id };
  await store.save(gone, { sessionId: `${id}-gone`, importedFrom }, { ifRevision: null });
  await store.append(gone, [say(text)]);
  await store.fork.fork(gone, { ...ref, key: `agent:${ref.agentId}:heir` }, { sessionId: `${id}-heir` });
  await store.remove(gone, { purge: true });
}

export interface SecuredStore {
  readonly schema: string;
  readonly role: string;
  /** For logging in as the role. */
  readonly roleUrl: string;
  readonly owner: PostgresStore;
  dispose(): Promise<void>;
}

/** A secured store with two agents, and a role that has the README's grants and the agent `main`. */
export async function openSecured(
  url: string,
  {
    schema = newSchema(),
    isNew = true,
    layout = "plain",
  }: { readonly schema?: string; readonly isNew?: boolean; readonly layout?: LayoutName } = {},
): Promise<SecuredStore> {
  const role = `role_${schema}`;
  const roleUrl = new URL(url);
  [roleUrl.username, roleUrl.password] = [role, "secret"];
  const owner = createPostgresStore({ url, schema, partitions: 2, ...(isNew ? { rowSecurity: true, layout } : {}) });
  if (isNew) {
    await fillAgent(owner, own, "plain");
    await fillAgent(owner, theirs, "Zanzibar");
    for await (const _hit of owner.search?.search({ text: "Zanzibar" }) ?? []) continue;
  } else await owner.list();
  await withClient(url, (client) =>
    client.query(
      `CREATE ROLE ${role} LOGIN PASSWORD 'secret'; ${readmeGrants(schema, role)} ${giveMain(layout, schema, role)}`,
    ),
  );
  return {
    schema,
    role,
    roleUrl: roleUrl.href,
    owner,
    async dispose() {
      await owner.close();
      await withClient(url, (client) => client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
    },
  };
}

/** What a statement of the role came to: rows or the code of an error, and all that the server said. */
export interface Outcome {
  readonly result: string;
  readonly said: string;
}

/** Runs a statement and takes down everything the server says: rows, notices, errors with their details, copied data. */
export async function take(client: pg.Client, sql: string): Promise<Outcome> {
  const said: string[] = [];
  const onNotice = ({ message }: { readonly message?: string | undefined }): void => void said.push(String(message));
  const onCopy = ({ chunk }: { readonly chunk: Buffer }): void => void said.push(chunk.toString());
  const wire = Reflect.get(client, "connection") as NodeJS.EventEmitter;
  client.on("notice", onNotice);
  wire.on("copyData", onCopy);
  try {
    const { rows, rowCount } = await client.query(sql);
    said.push(JSON.stringify(rows));
    return { result: `${rowCount ?? 0} rows`, said: said.join("\n") };
  } catch (error) {
    const { code, message, detail, hint, where } = error as Readonly<Record<string, unknown>>;
    // The statement itself is the role's own text.
    return { result: String(code), said: [...said, message, detail, hint, where].join("\n") };
  } finally {
    client.off("notice", onNotice);
    wire.off("copyData", onCopy);
  }
}
