import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { withClient } from "./store-under-test.ts";
import { openSecured, theirs, type SecuredStore } from "./secured-store.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const largest = "9223372036854775807";

/** With these a role would stop the lists, searches and checks of programs that serve all agents. */
const refused: readonly string[] = [
  `UPDATE sessions SET updated_at_ms = ${largest}`,
  `UPDATE sessions SET updated_at_ms = -${largest}`,
  `UPDATE sessions SET last_seq = ${largest}`,
  "UPDATE sessions SET last_seq = -1",
  "UPDATE sessions SET entry_values = NULL",
  `UPDATE sessions SET base_nos = ARRAY[session_no], base_to_seqs = ARRAY[${largest}], base_ids = ARRAY['x']`,
  "UPDATE sessions SET base_nos = ARRAY[session_no], base_to_seqs = NULL, base_ids = NULL",
  "UPDATE sessions SET base_nos = ARRAY[session_no, session_no], base_to_seqs = ARRAY[1, NULL]::bigint[], base_ids = ARRAY['x', 'y']",
  "UPDATE sessions SET base_nos = array_fill(session_no, ARRAY[200000]), base_to_seqs = array_fill(9::bigint, ARRAY[200000]), base_ids = array_fill('x'::text, ARRAY[200000])",
  "UPDATE sessions SET base_nos = ARRAY[[session_no]], base_to_seqs = '{{1}}', base_ids = '{{x}}'",
];

/** Damage that a role may do to what is its own. */
const own = (theirNumber: string): readonly string[] => [
  ...(theirNumber === "" ? [] : [`UPDATE sessions SET session_no = ${theirNumber} WHERE session_id = 'mine-heir'`]),
  "UPDATE sessions SET entry_names = ARRAY['x'], entry_values = ARRAY['y'] WHERE session_id = 'mine'",
  `UPDATE sessions SET entry_values[1] = '${"[".repeat(20_000)}' WHERE session_id = 'mine-heir'`,
  "UPDATE sessions SET base_nos = ARRAY[session_no], base_to_seqs = ARRAY[99], base_ids = ARRAY['x'] WHERE session_id = 'mine'",
  `UPDATE sessions SET window_seq = -5, fence = ${largest}, turn_id = 't', turn_owner = 'o', lease_until_ms = 'NaN'`,
  "UPDATE sessions SET head_id = E'\\x01{', redacted_messages = array_fill(1::bigint, ARRAY[10000]), last_seq = 5000000",
  "UPDATE sessions SET session_id = E'a\\n\\x1b[31m' || session_id, key = E'\\x1b]0;' || key, namespace = ''",
  "UPDATE records SET bytes = -2147483648, message_number = -1",
  `UPDATE records SET rest = NULL, parent_id = E'\\x01{', ts_ms = ${largest}, stored_at_ms = ${largest} WHERE seq = 1`,
  "UPDATE records SET form = 7, source = '\\xff', rest_hash = '\\x00', type = '' WHERE seq = 2",
  "UPDATE search_documents SET words = (SELECT string_agg('w' || i || ':1', ' ')::tsvector FROM generate_series(1, 50000) i)",
  `UPDATE search_documents SET ts_ms = ${largest}`,
  `UPDATE search_positions SET indexed_seq = ${largest}`,
  "UPDATE keyed_appends SET durability = 'x', digest = '\\x'",
  "DELETE FROM agents",
];

async function all<Each>(pages: AsyncIterable<Each>): Promise<Each[]> {
  const found: Each[] = [];
  for await (const each of pages) found.push(each);
  return found;
}

describe.skipIf(url === "").each(["plain", "tenant"] as const)(
  `rows that a role has damaged on purpose, layout %s${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  (layout) => {
    let fixture: SecuredStore;
    let role: pg.Client;
    let folder: string;
    beforeAll(async () => {
      fixture = await openSecured(url, { layout });
      role = new pg.Client({ connectionString: fixture.roleUrl });
      await role.connect();
      await role.query(`SET search_path = "${fixture.schema}"`);
      folder = await mkdtemp(join(tmpdir(), "throughline-poison-"));
    });
    afterAll(async () => {
      await role.end();
      await fixture.dispose();
      await rm(folder, { recursive: true });
    });

    it.each(refused)("%s is refused", async (sql) => {
      await expect(role.query(sql)).rejects.toMatchObject({ code: "42501" });
    });

    it(
      "hide and stop nothing of another agent: lists, searches, checks, copies, appends",
      { tags: ["slow"] },
      async () => {
        // In the tenant layout the number of another tenant's session is free.
        const { rows } = await withClient(url, (client) =>
          client.query<{ no: string }>(
            `SELECT session_no AS no FROM "${fixture.schema}".sessions WHERE session_id = 'theirs'`,
          ),
        );
        for (const sql of own(layout === "plain" ? "" : (rows[0]?.no ?? "")))
          expect((await role.query(sql)).rowCount).toBeGreaterThan(0);
        const { owner } = fixture;
        const others = ["theirs", "theirs-heir"];
        for (const sort of ["updated", "key"] as const) {
          const listed: string[] = [];
          for (let cursor: string | null | undefined; cursor !== null;) {
            const page = await owner.list({
              state: "any",
              sort,
              limit: 1,
              ...(cursor === undefined ? {} : { cursor }),
            });
            listed.push(...page.sessions.map(({ sessionId }) => sessionId));
            cursor = page.nextCursor;
          }
          expect(listed.filter((id) => id.startsWith("theirs")).toSorted()).toEqual(others);
        }
        await owner.append(theirs, [{ type: "message", message: { role: "user", content: "needle" } }]);
        const search = owner.search ?? expect.unreachable("no search");
        for (const _before of [true, false]) {
          const hits = await all(search.search({ text: "needle", state: "any" }));
          expect(hits.map(({ sessionId }) => sessionId)).toEqual(["theirs"]);
          await search.rebuild?.();
        }
        const findings = await all(owner.maintenance.verify({ full: true }));
        expect(findings.filter(({ key }) => key?.startsWith("agent:other:") === true)).toEqual([]);
        expect(findings.length).toBeGreaterThan(0);
        await owner.maintenance.backup(join(folder, "store.sql"));
        expect((await owner.readWindow(theirs)).records).toHaveLength(4);
      },
    );
  },
);
