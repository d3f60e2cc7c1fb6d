import { DatabaseSync } from "node:sqlite";
import { foreignFormats } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { openForeignDatabase } from "../src/node/foreign-database.ts";
import { Home } from "./synced-home.ts";

const sessions = 20;
const messages = 10;
const times = ", time_created INTEGER, time_updated INTEGER";

/** The tables of opencode since version 1.2. */
class OpencodeDatabase implements Disposable {
  readonly path: string;
  readonly #database: DatabaseSync;
  readonly #hasTimes: boolean;
  #now = 1_700_000_000_000;

  constructor(path: string, hasTimes = true) {
    this.path = path;
    this.#database = new DatabaseSync(path);
    this.#hasTimes = hasTimes;
    const updated = hasTimes ? times : ", time_created INTEGER";
    this.run(
      `CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT, revert TEXT${updated})`,
    );
    this.run(`CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, data TEXT${updated})`);
    this.run(`CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT${updated})`);
    this.run("BEGIN");
    for (let session = 0; session < sessions; session++) {
      this.#add("session", { id: `ses_${session}`, directory: "/srv", title: "T" });
      for (let at = 0; at < messages; at++) this.say(session, at);
    }
    this.run("COMMIT");
  }

  run(sql: string, ...values: readonly (string | number)[]): void {
    this.#database.prepare(sql).run(...values);
  }

  say(session: number, at: number): void {
    const ids = { id: `msg_${session}_${at}`, session_id: `ses_${session}` };
    this.#add("message", { ...ids, data: '{"role":"user","time":{"created":1}}' });
    const text = JSON.stringify({ type: "text", text: `words ${session} ${at}` });
    this.#add("part", { ...ids, id: `prt_${session}_${at}`, message_id: ids.id, data: text });
  }

  change(table: string, id: string, column: string, value: string): void {
    const time = this.#hasTimes ? `, time_updated = ${++this.#now}` : "";
    this.run(`UPDATE ${table} SET ${column} = ?${time} WHERE id = ?`, value, id);
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  #add(table: string, row: Readonly<Record<string, string>>): void {
    const stated = { time_created: ++this.#now, ...(this.#hasTimes ? { time_updated: this.#now } : {}) };
    const fields: Readonly<Record<string, string | number>> = { ...row, ...stated };
    const names = Object.keys(fields);
    this.run(
      `INSERT INTO ${table} (${names.join()}) VALUES (${names.map(() => "?").join()})`,
      ...Object.values(fields),
    );
  }
}

describe("a database of which one session changed", () => {
  it("gives that session only, also to the next process", async () => {
    using home = new Home();
    using database = new OpencodeDatabase(home.folder.at("opencode.db"));
    const places = { places: () => [database.path] };
    expect((await home.pass(places)).states).toHaveLength(sessions);
    database.say(7, messages);
    const { sources, unchanged } = await home.pass(places);
    expect(sources).toMatchObject([{ sessionId: "ses_7", state: "grown", records: 1 }]);
    expect(unchanged).toBe(sessions - 1);
    expect(await home.pass(places)).toMatchObject({ states: [], unchanged: 1 });
    // The sessions stay known while the whole database is.
    database.change("session", "ses_3", "title", "Another");
    const renamed = await home.pass(places);
    expect([renamed.unchanged, renamed.sources.map(({ sessionId }) => sessionId)]).toEqual([sessions - 1, ["ses_3"]]);
  });

  it("tries a session again that was refused, and finds a part that was written over", async () => {
    using home = new Home();
    using database = new OpencodeDatabase(home.folder.at("opencode.db"));
    const places = { places: () => [database.path] };
    await home.pass(places);
    database.change("part", "prt_5_2", "data", '{"type":"text","text":"other"}');
    for (let pass = 0; pass < 2; pass++) {
      const { sources, unchanged } = await home.pass(places);
      expect([sources.map(({ sessionId, state }) => [sessionId, state]), unchanged]).toEqual([
        [["ses_5", "refused"]],
        sessions - 1,
      ]);
    }
  });

  it("is read as a whole where it states no times of changes", async () => {
    using home = new Home();
    using database = new OpencodeDatabase(home.folder.at("opencode.db"), false);
    const places = { places: () => [database.path] };
    await home.pass(places);
    database.say(7, messages);
    expect((await home.pass(places)).states.toSorted()).toEqual([
      "grown",
      ...Array<string>(sessions - 1).fill("unchanged"),
    ]);
  });

  it("reads three rows of each session that did not change", async () => {
    using home = new Home();
    using written = new OpencodeDatabase(home.folder.at("opencode.db"));
    const database = await openForeignDatabase(written.path);
    let rows = 0;
    const counted = {
      columns: (table: string) => database.columns(table),
      all: (...asked: Parameters<typeof database.all>) => {
        const found = database.all(...asked);
        rows += found.length;
        return found;
      },
      *iterate(...asked: Parameters<typeof database.iterate>) {
        for (const row of database.iterate(...asked)) {
          rows += 1;
          yield row;
        }
      },
    };
    const format = foreignFormats.get("opencode")?.database;
    const readAll = (isKnown?: (id: string) => boolean): number => {
      rows = 0;
      for (const session of format?.sessions(counted, isKnown) ?? []) Array.from(session.lines());
      return rows;
    };
    const changed = 1 + messages + messages + messages;
    expect(readAll()).toBe(sessions * changed);
    expect(readAll(() => true)).toBe(sessions * 3);
    expect(readAll((id) => id !== "ses_7")).toBe(sessions * 3 + changed - 1);
    await database.close();
  });
});
