import { ThroughlineError } from "@throughline/core";
import { createPostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { readmeGrants } from "./readme-grants.ts";
import { openSecured, type SecuredStore } from "./secured-store.ts";
import { withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

describe.skipIf(url === "").each(["plain", "tenant"] as const)(
  `rights that row security does not bind, layout %s${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  (layout) => {
    let fixture: SecuredStore;
    let client: pg.Client;

    beforeAll(async () => {
      fixture = await openSecured(url, { layout });
      client = new pg.Client({ connectionString: url });
      await client.connect();
    });
    afterAll(async () => {
      await client.end();
      await fixture.dispose();
    });

    it.each([
      ["GRANT ALL ON ALL TABLES IN SCHEMA $s TO $r", "REFERENCES, TRIGGER, TRUNCATE"],
      ["GRANT TRUNCATE ON $s.records_0 TO PUBLIC", "TRUNCATE"],
      ["GRANT CREATE ON SCHEMA $s TO $r", "CREATE"],
      ["ALTER SCHEMA $s OWNER TO $r", "CREATE"],
    ])("%s: refused where row security is asked for, and the remedy helps", async (sql, rights) => {
      const open = async (): Promise<unknown> => {
        await using store = createPostgresStore({ url, schema: fixture.schema, rowSecurity: true, notify: false });
        return store.list().then(
          () => null,
          (error: unknown) => error,
        );
      };
      await client.query(sql.replace("$s", `"${fixture.schema}"`).replace("$r", fixture.role));
      const error = await open();
      expect(ThroughlineError.isInstance(error) && error.code).toBe("STORE_UNSUPPORTED");
      if (!ThroughlineError.isInstance(error)) return;
      expect(error.message).toContain(`the right to ${rights}.`);
      // Who owns the schema is not told by a right, and who owned it has none afterwards.
      if (sql.startsWith("ALTER"))
        await client.query(
          `ALTER SCHEMA "${fixture.schema}" OWNER TO postgres; ${readmeGrants(fixture.schema, fixture.role)}`,
        );
      await client.query(error.remedy);
      expect(await open()).toBeNull();
    });

    it("a role that may make roles is refused where a tenant has one, and the remedy helps", async () => {
      const open = async (): Promise<unknown> => {
        await using store = createPostgresStore({ url, schema: fixture.schema, rowSecurity: true, notify: false });
        return store.list().then(
          () => null,
          (error: unknown) => error,
        );
      };
      await client.query(`ALTER ROLE ${fixture.role} CREATEROLE`);
      const error = await open();
      await client.query(ThroughlineError.isInstance(error) ? error.remedy : `ALTER ROLE ${fixture.role} NOCREATEROLE`);
      expect(await open()).toBeNull();
      if (layout === "plain") return expect(error).toBeNull();
      if (!ThroughlineError.isInstance(error)) return expect.unreachable("opened");
      expect([error.code, error.message]).toEqual([
        "STORE_UNSUPPORTED",
        expect.stringContaining(`${fixture.role}, which may make roles`),
      ]);
    });

    it("code that a role left behind while it could is refused, and the remedy removes it", async () => {
      const s = `"${fixture.schema}"`;
      const open = async (): Promise<unknown> => {
        await using store = createPostgresStore({ url, schema: fixture.schema, rowSecurity: true, notify: false });
        return store.list().catch((error: unknown) => error);
      };
      await client.query(
        `GRANT CREATE ON SCHEMA ${s} TO ${fixture.role}; GRANT TRIGGER ON ${s}.sessions TO ${fixture.role}`,
      );
      await withClient(fixture.roleUrl, (role) =>
        role.query(`CREATE FUNCTION ${s}.is_own_1(p integer) RETURNS boolean LANGUAGE sql AS 'SELECT true';
          CREATE FUNCTION ${s}.spy() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
          CREATE TRIGGER spy BEFORE UPDATE ON ${s}.sessions FOR EACH ROW EXECUTE FUNCTION ${s}.spy()`),
      );
      await client.query(
        `REVOKE CREATE ON SCHEMA ${s} FROM ${fixture.role}; REVOKE TRIGGER ON ${s}.sessions FROM ${fixture.role}`,
      );
      const error = await open();
      if (!ThroughlineError.isInstance(error)) return expect.unreachable("opened");
      expect(error.code).toBe("STORE_UNSUPPORTED");
      expect(error.message).toMatch(
        /TRIGGER spy ON \S+sessions, FUNCTION \S+spy\(\), FUNCTION \S+is_own_1\(integer\)\.$/,
      );
      await client.query(error.remedy);
      expect(ThroughlineError.isInstance(await open())).toBe(false);
    });
  },
);
