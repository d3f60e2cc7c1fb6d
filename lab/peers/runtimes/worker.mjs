// A Worker that runs a turn in each request, bundled for workerd: core, history, guard, the memory store and the facade.
import { defineTool, openSession, sessionRef } from "@throughline/core";
import { classifyOverflow } from "@throughline/guard";
import { buildContext } from "@throughline/history";
import { historyTargets } from "@throughline/history/internal";
import { offline } from "@throughline/models/offline";
import { createSessions } from "@throughline/session";
import { createMemoryStore } from "@throughline/store-memory";

const store = createMemoryStore();

// oxlint-disable-next-line import/no-default-export -- a Worker is its default export
export default {
  async fetch() {
    try {
      const ref = sessionRef({ key: "agent:main:worker" });
      const { isNew } = await openSession(store, ref);
      const tool = defineTool({ name: "year", description: "The year.", input: { type: "object" }, run: () => "2026" });
      const sessions = createSessions({ store, model: offline(), tools: [tool] });
      const session = await sessions.open(ref.key);
      const { outcome } = await session.runTurn("Hello");
      await sessions.close();
      const pages = await Array.fromAsync(store.read(ref));
      const { head } = await store.load(ref);
      const context = buildContext(
        pages.flatMap(({ records }) => records),
        { headId: head.headId },
      );
      const violations = [...historyTargets.values()].flatMap((target) =>
        target.validate(target.render(context).messages, null),
      );
      const { kind } = classifyOverflow({ status: 400, message: "prompt is too long: 210000 tokens > 200000 maximum" });
      return Response.json({ isNew, outcome, messages: context.messages.length, violations, kind });
    } catch (error) {
      return new Response(String(error?.stack ?? error), { status: 500 });
    }
  },
};
