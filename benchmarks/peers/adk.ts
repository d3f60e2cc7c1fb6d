// ADK for TypeScript: the four events of a turn, appended one after the other to a session that is held open, as its runner
// does; what the runner reads before each turn is left out. "database" is its DatabaseSessionService on an SQLite file, in the
// settings that its driver takes by itself (rollback journal, synchronous FULL); "memory" its InMemorySessionService.
import { join } from "node:path";
import { callId, turnParts, type Contender } from "./contender.ts";

interface Session {
  readonly id: string;
  readonly events: readonly unknown[];
}
interface Service {
  createSession(request: unknown): Promise<Session>;
  getSession(request: unknown): Promise<Session | undefined>;
  appendEvent(request: { readonly session: Session; readonly event: unknown }): Promise<unknown>;
}
interface Sessions {
  readonly service: Service;
  close(): Promise<unknown>;
}
type EventOf = (fields: unknown) => unknown;

const place = { appName: "peers", userId: "user", sessionId: "peers" };

async function openedDatabase(folder: string): Promise<Sessions> {
  const [database, driver] = ["@google/adk/sessions/database", "@mikro-orm/better-sqlite"];
  const { DatabaseSessionService: services } = (await import(database)) as {
    readonly DatabaseSessionService: new (
      options: unknown,
    ) => Service & { readonly orm?: { close(force: boolean): Promise<void> } };
  };
  const { BetterSqliteDriver: drivers } = (await import(driver)) as { readonly BetterSqliteDriver: unknown };
  const service = new services({ driver: drivers, dbName: join(folder, "adk.db") });
  return { service, close: async () => service.orm?.close(true) };
}

async function openedMemory(): Promise<Sessions> {
  const name = "@google/adk";
  const { InMemorySessionService: services } = (await import(name)) as {
    readonly InMemorySessionService: new () => Service;
  };
  return { service: new services(), close: () => Promise.resolve() };
}

/** The events of a turn; the id and the time of each are made by ADK. */
function eventsOf(index: number, createEvent: EventOf): readonly unknown[] {
  const id = callId(index);
  const invocationId = `turn-${index}`;
  const event = (author: string, role: string, part: unknown): unknown =>
    createEvent({ invocationId, author, content: { role, parts: [part] } });
  return [
    event("user", "user", { text: turnParts.question }),
    event("agent", "model", { functionCall: { id, name: turnParts.tool, args: turnParts.toolInput } }),
    event("agent", "user", { functionResponse: { id, name: turnParts.tool, response: { output: turnParts.result } } }),
    event("agent", "model", { text: turnParts.answer }),
  ];
}

/** Opens one of its services with a new session. */
export async function open(folder: string, kind: string | undefined): Promise<Contender> {
  const name = "@google/adk";
  const { createEvent } = (await import(name)) as { readonly createEvent: EventOf };
  const opened = (): Promise<Sessions> => (kind === "database" ? openedDatabase(folder) : openedMemory());
  const sessions = await opened();
  const session = await sessions.service.createSession(place);
  return {
    async turn(index) {
      for (const event of eventsOf(index, createEvent)) await sessions.service.appendEvent({ session, event });
    },
    async reopen() {
      const again = kind === "database" ? await opened() : sessions;
      const found = await again.service.getSession(place);
      if (again !== sessions) await again.close();
      return found?.events.length ?? 0;
    },
    close: () => sessions.close(),
  };
}
