import { createPostgresStore, relocateSessions } from "@throughline/store-postgres";
import { describe, expect, inject, it } from "vitest";
import { openSecured, own, theirs } from "./secured-store.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

describe.skipIf(url === "")(
  `moving to a schema whose roles write what they like${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it("takes nothing from a tenant for what another one wrote under the same number", async () => {
      const source = newSchema();
      await using from = createPostgresStore({ url, schema: source, notify: false });
      const ref = { ...theirs, key: "agent:other:moved" };
      await from.save(ref, { sessionId: "moved" }, { ifRevision: null });
      await from.append(ref, [{ type: "message", message: { role: "user", content: "needle" } }]);
      const fixture = await openSecured(url, { layout: "tenant" });
      try {
        const to = fixture.owner;
        const move = async (): Promise<number> => {
          let count = 0;
          for await (const { outcome } of relocateSessions(from, to)) count += outcome === "moved" ? 1 : 0;
          return count;
        };
        expect(await move()).toBe(1);
        const s = `"${fixture.schema}"`;
        const written = await withClient(url, (client) =>
          client.query<{ no: string }>(`SELECT session_no AS no FROM ${s}.sessions WHERE session_id = 'moved'`),
        );
        const number = written.rows[0]?.no ?? expect.unreachable("not moved");
        // A record of the same number in the role's tenant, which hangs on no session of its own.
        const copied = await withClient(fixture.roleUrl, (client) =>
          client.query(`INSERT INTO ${s}.records (tenant, session_no, seq, stored_at_ms, crc, bytes, message_number, side, id, type)
            SELECT r.tenant, ${number}, 1, 0, 0, 0, 0, false, 'x', 'message' FROM ${s}.records r LIMIT 1`),
        );
        expect(copied.rowCount).toBe(1);
        // Gone from the source: what is left of it at the target is taken for copies.
        const archived = (await from.list({ state: "any" })).sessions;
        for (const session of archived) await from.remove(session.ref, { purge: true });
        expect(await move()).toBe(0);
        expect((await to.readWindow(ref)).records).toHaveLength(1);
        const left = await withClient(url, (client) =>
          client.query(`SELECT id FROM ${s}.records WHERE session_no = ${number} ORDER BY id`),
        );
        expect(left.rows.map(({ id }: { readonly id: string }) => id)).not.toContain("x");
        expect(left.rows).toHaveLength(1);
        expect((await to.list({ agentId: own.agentId })).sessions.length).toBeGreaterThan(0);
      } finally {
        await fixture.dispose();
      }
    });
  },
);
