import { expect, expectTypeOf, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { scriptedModel } from "@throughline/testing";
import { createSessions, type RunTurnOptions, type Session, type Sessions, type Turn } from "@throughline/session";
import { key } from "./session-fixture.ts";

/** True for a type in which any name is a field, so that a misspelled one compiles. */
type IsOpen<Type> = string extends keyof Type ? true : false;
type Row = Awaited<ReturnType<Sessions["list"]>>["sessions"][number];
type Message = Awaited<ReturnType<Session["transcript"]>>["messages"][number];

it("gives results whose fields are all named", async () => {
  expectTypeOf<IsOpen<Row>>().toEqualTypeOf<false>();
  expectTypeOf<IsOpen<Turn>>().toEqualTypeOf<false>();
  expectTypeOf<IsOpen<Turn["calls"][number]>>().toEqualTypeOf<false>();
  expectTypeOf<IsOpen<Turn["gauge"]>>().toEqualTypeOf<false>();
  expectTypeOf<IsOpen<Session["spend"]>>().toEqualTypeOf<false>();
  expectTypeOf<IsOpen<Session["head"]>>().toEqualTypeOf<false>();
  expectTypeOf<IsOpen<Session["pendingApprovals"][number]>>().toEqualTypeOf<false>();
  expectTypeOf<IsOpen<Awaited<ReturnType<Session["messages"]>>>>().toEqualTypeOf<false>();
  expectTypeOf<IsOpen<Awaited<ReturnType<Session["branches"]>>[number]>>().toEqualTypeOf<false>();
  expectTypeOf<IsOpen<Message>>().toEqualTypeOf<false>();
  expectTypeOf<Row["title"]>().toEqualTypeOf<string | null>();

  await using sessions = createSessions({ store: createMemoryStore(), model: scriptedModel(["Hello."]) });
  await (await sessions.open(key)).runTurn("Hi");
  const [row] = (await sessions.list()).sessions;
  // @ts-expect-error A row has no such field.
  expect(row?.titel).toBeUndefined();
});

it("takes undefined for every option, as a program passes on what it may not have", async () => {
  const options: { readonly [Name in keyof RunTurnOptions]-?: undefined } = {
    signal: undefined,
    onDelta: undefined,
    onEvent: undefined,
    whenBusy: undefined,
    queue: undefined,
    waitMs: undefined,
    model: undefined,
    system: undefined,
    tools: undefined,
    toolChoice: undefined,
    output: undefined,
    maxSteps: undefined,
    leaseMs: undefined,
    mentioned: undefined,
    whenWaiting: undefined,
    idempotencyKey: undefined,
  };
  await using sessions = createSessions({
    store: createMemoryStore(),
    model: scriptedModel(["Hello."]),
    system: undefined,
    tools: undefined,
    approveTool: undefined,
    agentId: undefined,
    clock: undefined,
  });
  expect((await (await sessions.open(key)).runTurn("Hi", options)).text).toBe("Hello.");
});
