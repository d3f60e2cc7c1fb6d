// What the session services of the ADK and ours do. Runs beside the ADK's packages:
// node --conditions=@throughline/source services.ts REPOSITORY POSTGRES_URL
import { rmSync } from "node:fs";
import process from "node:process";
import { type Fields, folder, newStore, ofOurs, outcome, sdk, type Service, type Session, text } from "./setup.ts";

const { InMemorySessionService, DatabaseSessionService } = sdk;

const [, postgres = ""] = process.argv.slice(2);
const services: readonly (readonly [string, () => Promise<Service>])[] = [
  ["InMemory", () => Promise.resolve(new InMemorySessionService())],
  ...(postgres === "" ? [] : ([["Database", () => databaseService()]] as const)),
  ["ours", () => Promise.resolve(ofOurs(newStore()))],
];

function databaseService(): Promise<Service> {
  return Promise.resolve(new DatabaseSessionService(postgres.replace(/^postgres:/, "postgresql:")));
}

let apps = 0;
const wordsOf = ({ events: all }: Session): string =>
  all.map(({ content }) => ((content as { parts: { text?: string }[] }).parts[0]?.text ?? "").trim()).join(" ");

interface Row {
  readonly about: string;
  /** Undefined: as in the ADK's own services. */
  readonly expected: Readonly<Record<string, string>>;
  run(
    service: Service,
    key: { readonly appName: string; readonly userId: string; readonly sessionId: string },
  ): Promise<string>;
}

const rows: readonly Row[] = [
  {
    about: "createSession with an id that exists",
    expected: {
      InMemory: "done 0",
      Database: "Session with id s already exists. 1",
      ours: "Session with id s already exists. 1",
    },
    run: async (service, key) => {
      const session = await service.createSession(key);
      await service.appendEvent({ session, event: text("kept") });
      const again = await outcome(service.createSession(key));
      return `${again} ${(await service.getSession(key))?.events.length}`;
    },
  },
  {
    about: "afterTimestamp equal to an event's time",
    expected: { InMemory: "b c", Database: "c", ours: "b c" },
    run: async (service, key) => {
      const session = await service.createSession(key);
      for (const [at, words] of ["a", "b", "c"].entries())
        await service.appendEvent({ session, event: text(words, { timestamp: Date.now() + 1000 + at }) });
      const timestamp = session.events[1]?.["timestamp"];
      return wordsOf((await service.getSession({ ...key, config: { afterTimestamp: timestamp } })) as Session);
    },
  },
  {
    about: "app: and user: in the state of createSession reach another session",
    expected: { InMemory: "{}", Database: '{"app:a":1,"user:b":2}', ours: '{"app:a":1,"user:b":2}' },
    run: async (service, key) => {
      await service.createSession({ ...key, state: { "app:a": 1, "user:b": 2, c: 3, "temp:d": 4 } });
      return JSON.stringify((await service.createSession({ ...key, sessionId: "other" })).state);
    },
  },
  {
    about: "state of an event reaches session, user and app; temp: goes",
    expected: {
      InMemory: '{"a":1,"app:b":2,"user:c":3} {"app:b":2}',
      Database: '{"a":1,"app:b":2,"user:c":3} {"app:b":2}',
      ours: '{"a":1,"app:b":2,"user:c":3} {"app:b":2}',
    },
    run: async (service, key) => {
      const session = await service.createSession(key);
      const actions = { stateDelta: { a: 1, "app:b": 2, "user:c": 3, "temp:d": 4 } };
      await service.appendEvent({ session, event: text("x", { actions }) });
      const sorted = (state: Fields | undefined): string =>
        JSON.stringify(Object.fromEntries(Object.entries(state ?? {}).toSorted()));
      const read = await service.getSession(key);
      const other = await service.createSession({ ...key, userId: "another", sessionId: "o" });
      return `${sorted(read?.state)} ${sorted(other.state)}`;
    },
  },
  {
    about: "an event with an earlier timestamp, and the time of the session",
    expected: { InMemory: "late early back", Database: "early late back", ours: "late early forth" },
    run: async (service, key) => {
      const session = await service.createSession(key);
      await service.appendEvent({ session, event: text("late", { timestamp: Date.now() + 2000 }) });
      const before = session.lastUpdateTime;
      await service.appendEvent({ session, event: text("early", { timestamp: Date.now() - 100_000 }) });
      const read = (await service.getSession(key)) as Session;
      return `${wordsOf(read)} ${read.lastUpdateTime < before - 1000 ? "back" : "forth"}`;
    },
  },
  {
    about: "a session object that another one has overtaken",
    expected: { InMemory: "done one two three", Database: "done one two three", ours: "SESSION_BUSY one two" },
    run: async (service, key) => {
      const first = await service.createSession(key);
      await service.appendEvent({ session: first, event: text("one", { timestamp: Date.now() + 1 }) });
      const second = (await service.getSession(key)) as Session;
      await service.appendEvent({ session: second, event: text("two", { timestamp: Date.now() + 10 }) });
      const third = await outcome(
        service.appendEvent({ session: first, event: text("three", { timestamp: Date.now() + 20 }) }),
      );
      return `${third} ${wordsOf((await service.getSession(key)) as Session)}`;
    },
  },
  {
    about: "an event with a known id",
    expected: { InMemory: "new last", Database: "new last", ours: "new last" },
    run: async (service, key) => {
      const session = await service.createSession(key);
      const event = text("old", { timestamp: Date.now() + 1 });
      await service.appendEvent({ session, event });
      await service.appendEvent({ session, event: text("last", { timestamp: Date.now() + 10 }) });
      const content = { role: "user", parts: [{ text: "new" }] };
      await service.appendEvent({ session, event: { ...event, content } });
      await service.appendEvent({ session, event: { ...event, content } });
      return wordsOf((await service.getSession(key)) as Session);
    },
  },
  {
    about: "an event for a session that does not exist",
    expected: {
      InMemory: "done",
      Database: "Session gone not found for appendEvent",
      ours: "Session gone not found for appendEvent",
    },
    run: async (service, key) => {
      const session = await service.createSession(key);
      return outcome(service.appendEvent({ session: { ...session, id: "gone" }, event: text("lost") }));
    },
  },
  {
    about: "lists, pages, numRecentEvents, deletion",
    expected: { InMemory: "3 2 2 b c undefined 2", Database: "3 2 2 b c undefined 2", ours: "3 2 2 b c undefined 2" },
    run: async (service, key) => {
      for (const sessionId of ["1", "2"]) await service.createSession({ ...key, sessionId });
      const session = await service.getOrCreateSession(key);
      for (const [at, words] of ["a", "b", "c"].entries())
        await service.appendEvent({ session, event: text(words, { timestamp: Date.now() + at }) });
      const recent = (await service.getSession({ ...key, config: { numRecentEvents: 2 } })) as Session;
      const all = await service.listSessions({ appName: key.appName });
      const page = await service.listSessions({
        appName: key.appName,
        userId: key.userId,
        limit: 2,
        page: 1,
        order: "desc",
      });
      await service.deleteSession(key);
      const read = await service.getSession(key);
      const left = await service.listSessions({ appName: key.appName });
      return `${all.totalItems} ${page.sessions.length} ${page.totalPages} ${wordsOf(recent)} ${read} ${left.totalItems}`;
    },
  },
  {
    about: "hostile names",
    expected: { InMemory: "6 of 6", Database: "4 of 6", ours: "6 of 6" },
    run: async (service, key) => {
      const names = ["__proto__", "../x", "a:b", "x".repeat(200), "🦉", " "];
      const kept = names.map(async (name) => {
        const own = { appName: `${key.appName}${name}`, userId: name, sessionId: name };
        const session = await service.createSession(own);
        await service.appendEvent({ session, event: text(name, { actions: { stateDelta: { [name]: name } } }) });
        const read = await service.getSession(own);
        return read !== undefined && wordsOf(read) === name.trim() && Object.keys(read.state).join() === name;
      });
      const found = await Promise.allSettled(kept);
      return `${found.filter((one) => one.status === "fulfilled" && one.value).length} of ${names.length}`;
    },
  },
];

let failures = 0;
for (const { about, expected, run } of rows)
  for (const [name, open] of services) {
    apps += 1;
    const found = await run(await open(), { appName: `app${apps}`, userId: "u", sessionId: "s" });
    const isExpected = found === expected[name];
    if (!isExpected) failures += 1;
    process.stdout.write(`${isExpected ? "ok  " : "FAIL"} ${name}: ${about}: ${found}\n`);
  }
rmSync(folder, { recursive: true, force: true });
process.stdout.write(`adk: ${rows.length} rows on ${services.length} services, ${failures} failures\n`);
// The ADK's database service has no way to close.
process.exit(failures === 0 ? 0 : 1);
