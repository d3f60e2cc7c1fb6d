import { describe, expect, it } from "vitest";
import { render, rules, shape } from "./rendered-shape.ts";
import { assistant, call, result, text, user, type RecordSketch } from "./stored-records.ts";

/** As the flat records of the tutorials come out of their reader: no model, no stop reason. */
function flat(content: unknown): RecordSketch {
  return { type: "message", message: { role: "assistant", content } };
}

/** A call that has a record of its own. */
function ownCall(id: string): RecordSketch {
  return { type: "message", message: { role: "assistant", content: [call(id)], fragment: true } };
}

const thought = { type: "thinking", thinking: "Well.", thinkingSignature: "c2ln" };

/** A block of a reply that its program stored in a record of its own, under the reply's id. */
function partOf(responseId: string, block: unknown, isFurther: boolean): RecordSketch {
  return assistant([block], { responseId, ...(isFurther ? { fragment: true } : {}) });
}

interface Case {
  readonly title: string;
  readonly records: readonly RecordSketch[];
  readonly messages: readonly string[];
  readonly repairs?: readonly string[];
}

const cases: readonly Case[] = [
  {
    title: "a valid history stays as it is",
    records: [
      user("hi"),
      assistant([text("a"), call("t1"), call("t2")]),
      result("t2"),
      result("t1"),
      assistant("done"),
    ],
    messages: ['U "hi"', 'A "a" ?t1 ?t2', "U =t2 =t1", 'A "done"'],
  },
  {
    title: "calls one after the other stay apart",
    records: [user("hi"), assistant([call("t1")]), result("t1"), assistant([call("t2")]), result("t2")],
    messages: ['U "hi"', "A ?t1", "U =t1", "A ?t2", "U =t2"],
  },
  {
    title: "a call record joins the assistant text before it, or begins a message of its own",
    records: [user("hi"), flat([text("a")]), ownCall("t1"), result("t1"), user("more"), ownCall("t2"), result("t2")],
    messages: ['U "hi"', 'A "a" ?t1', 'U =t1 "more"', "A ?t2", "U =t2"],
    repairs: ["assistant-merged r3", "user-merged r5"],
  },
  {
    title: "call records in a row become one message before their results",
    records: [user("hi"), ownCall("t1"), ownCall("t2"), result("t1"), result("t2"), flat("done")],
    messages: ['U "hi"', "A ?t1 ?t2", "U =t1 =t2", 'A "done"'],
    repairs: ["assistant-merged r3"],
  },
  {
    title: "a call in its reply and in a record of its own is sent once",
    records: [
      user("hi"),
      flat([text("a"), call("t1")]),
      ownCall("t1"),
      result("t1"),
      flat([call("t2")]),
      ownCall("t2"),
      result("t2"),
      flat("done"),
    ],
    messages: ['U "hi"', 'A "a" ?t1', "U =t1", "A ?t2", "U =t2", 'A "done"'],
    repairs: ["duplicate-call r3", "duplicate-call r6"],
  },
  {
    title: "parallel calls stored in turn with their results, and also in their reply, become one reply and one answer",
    records: [
      user("hi"),
      flat([text("a"), call("t1"), call("t2")]),
      ownCall("t1"),
      result("t1"),
      ownCall("t2"),
      result("t2"),
      flat("done"),
    ],
    messages: ['U "hi"', 'A "a" ?t1 ?t2', "U =t1 =t2", 'A "done"'],
    repairs: ["duplicate-call r3", "duplicate-call r5"],
  },
  {
    title: "parallel calls stored only in turn with their results become one reply and one answer",
    records: [user("hi"), ownCall("t1"), result("t1"), ownCall("t2"), result("t2"), flat("done")],
    messages: ['U "hi"', "A ?t1 ?t2", "U =t1 =t2", 'A "done"'],
    repairs: ["assistant-merged r4"],
  },
  {
    title: "parts that bear one reply id are one reply",
    records: [
      user("hi"),
      assistant([call("t1")], { responseId: "m1" }),
      result("t1"),
      assistant([call("t2")], { responseId: "m1" }),
      result("t2"),
    ],
    messages: ['U "hi"', "A ?t1 ?t2", "U =t1 =t2"],
    repairs: ["assistant-merged r4"],
  },
  {
    title: "results stored before the user and call records go to their calls",
    records: [result("t1"), result("t2"), user("hi"), flat([text("a")]), ownCall("t1"), ownCall("t2"), flat("done")],
    messages: ['U "hi"', 'A "a" ?t1 ?t2', "U =t1 =t2", 'A "done"'],
    repairs: ["result-moved r1", "result-moved r2", "assistant-merged r5", "assistant-merged r6"],
  },
  {
    title: "a result behind a user message goes home, before the user's text",
    records: [user("hi"), assistant([call("t1")]), user("wait"), result("t1")],
    messages: ['U "hi"', "A ?t1", 'U =t1 "wait"'],
    repairs: ["result-moved r4", "user-merged r3"],
  },
  {
    title: "a result that may belong to two calls belongs to none",
    records: [
      user("a"),
      assistant([call("x", { n: 1 })]),
      user("b"),
      assistant([call("x", { n: 2 })]),
      user("c"),
      result("x"),
    ],
    messages: ['U "a"', "A ?x", 'U !x "b"', "A ?x_2", 'U !x_2 "c"'],
    repairs: [
      "orphan-result r6",
      "result-synthesized r2",
      "user-merged r3",
      "call-id-changed r4",
      "result-synthesized r4",
      "user-merged r5",
    ],
  },
  {
    title: "ids that a provider uses again stay with their own results",
    records: [
      user("a"),
      assistant([call("c0")]),
      result("c0", "first"),
      assistant([call("c0")]),
      result("c0", "second"),
    ],
    messages: ['U "a"', "A ?c0", "U =c0", "A ?c0_2", "U =c0_2"],
    repairs: ["call-id-changed r4"],
  },
  {
    title: "calls without a result are answered, at the end of the log too [HIS-14, HIS-21, C58]",
    records: [user("hi"), flat([text("a")]), ownCall("t1"), ownCall("t2")],
    messages: ['U "hi"', 'A "a" ?t1 ?t2', "U !t1 !t2"],
    repairs: ["assistant-merged r3", "assistant-merged r4", "result-synthesized r3", "result-synthesized r4"],
  },
  {
    title: "a crashed turn is closed before the reply that came after it",
    records: [user("hi"), assistant([call("t1")]), assistant("back again")],
    messages: ['U "hi"', "A ?t1", "U !t1", 'A "back again"'],
    repairs: ["result-synthesized r2"],
  },
  {
    title: "orphan and further results are left out",
    records: [user("hi"), result("gone"), assistant([call("t1")]), result("t1"), result("t1", "again")],
    messages: ['U "hi"', "A ?t1", "U =t1"],
    repairs: ["orphan-result r2", "duplicate-result r5"],
  },
  {
    title: "a failed turn goes whole, with its results",
    records: [
      user("hi"),
      assistant([text("half"), call("t1")], { stopReason: "aborted" }),
      result("t1"),
      assistant("", { stopReason: "error" }),
      user("again"),
    ],
    messages: ['U "hi" "again"'],
    repairs: ["failed-turn-dropped r2", "failed-turn-dropped r4", "result-of-dropped-turn r3", "user-merged r5"],
  },
  {
    title: "a history that begins with the assistant gets a user message first",
    records: [assistant("hello")],
    messages: ['U "(The conversation goes on from here.)"', 'A "hello"'],
    repairs: ["bootstrap-added r1"],
  },
  {
    title: "empty texts and messages go, assistant text stays",
    records: [user([text(""), text("hi")]), assistant([text(" \n"), text("a")]), user(""), assistant([])],
    messages: ['U "hi"', 'A "a"'],
    repairs: ["empty-text-removed r1", "empty-text-removed r2", "empty-message-removed r3", "empty-message-removed r4"],
  },
  {
    title: "parts of one reply in a row stay one without results",
    records: [user("hi"), assistant([call("t1")], { responseId: "m1" }), assistant("also", { responseId: "m1" })],
    messages: ['U "hi"', 'A ?t1 "also"', "U !t1"],
    repairs: ["assistant-merged r3", "result-synthesized r2"],
  },
  {
    title: "a crashed reply and the one after it stay apart",
    records: [user("hi"), assistant([call("t1")]), assistant([call("t2")]), result("t2")],
    messages: ['U "hi"', "A ?t1", "U !t1", "A ?t2", "U =t2"],
    repairs: ["result-synthesized r2"],
  },
  {
    title: "of two early results the first one counts",
    records: [result("t1", "first"), result("t1", "second"), user("hi"), assistant([call("t1")])],
    messages: ['U "hi"', "A ?t1", "U =t1"],
    repairs: ["result-moved r1", "duplicate-result r2"],
  },
  {
    title: "the same call in a later turn is another call",
    records: [user("a"), assistant([call("t1")]), user("b"), assistant([call("t1")]), result("t1")],
    messages: ['U "a"', "A ?t1", 'U !t1 "b"', "A ?t1_2", "U =t1_2"],
    repairs: ["result-synthesized r2", "user-merged r3", "call-id-changed r4"],
  },
  {
    title: "a call made again after its reply was aborted is another call",
    records: [user("a"), assistant([call("t1")], { stopReason: "aborted" }), assistant([call("t1")]), result("t1")],
    messages: ['U "a"', "A ?t1", "U =t1"],
    repairs: ["failed-turn-dropped r2"],
  },
  {
    title: "a repeated call takes its reply's thinking with it when nothing else is in it",
    records: [
      user("a"),
      assistant([call("t1")]),
      result("t1"),
      assistant([{ type: "thinking", thinking: "hm", thinkingSignature: "s" }, call("t1")]),
    ],
    messages: ['U "a"', "A ?t1", "U =t1"],
    repairs: ["duplicate-call r4", "thinking-removed r4"],
  },
  {
    title: "equal calls under one id are two when both have a result, else one",
    records: [
      user("a"),
      assistant([call("c"), call("c")]),
      result("c"),
      result("c"),
      user("b"),
      assistant([call("d"), call("d")]),
      result("d"),
    ],
    messages: ['U "a"', "A ?c ?c_2", 'U =c =c_2 "b"', "A ?d", "U =d"],
    repairs: ["call-id-changed r2", "user-merged r5", "duplicate-call r6"],
  },
  {
    title: "a result answers the newest reply that used its id",
    records: [
      user("a"),
      assistant([call("x", { n: 1 }), call("y")]),
      result("y"),
      assistant([call("x", { n: 2 })]),
      result("x"),
    ],
    messages: ['U "a"', "A ?x ?y", "U =y !x", "A ?x_2", "U =x_2"],
    repairs: ["result-synthesized r2", "call-id-changed r4"],
  },
  {
    title: "a made-up id takes no other call's",
    records: [
      user("a"),
      assistant([call("c_2"), call("c")]),
      result("c_2"),
      result("c"),
      assistant([call("c")]),
      result("c"),
    ],
    messages: ['U "a"', "A ?c_2 ?c", "U =c_2 =c", "A ?c_3", "U =c_3"],
    repairs: ["call-id-changed r5"],
  },
  {
    title: "complete replies in a row with their results after both are one",
    records: [user("a"), assistant([call("t1")]), assistant([text("and"), call("t2")]), result("t1"), result("t2")],
    messages: ['U "a"', 'A ?t1 "and" ?t2', "U =t1 =t2"],
    repairs: ["assistant-merged r3"],
  },
  {
    title: "a displaced result of another tool does not go to the call",
    records: [user("a"), assistant([call("t1")]), user("b"), result("t1", "x", { toolName: "write" })],
    messages: ['U "a"', "A ?t1", 'U !t1 "b"'],
    repairs: ["orphan-result r4", "result-synthesized r2", "user-merged r3"],
  },
  {
    title: "a displaced result goes to the call that counts, not to a failed one",
    records: [
      user("a"),
      assistant([call("t1")], { stopReason: "error" }),
      user("b"),
      assistant([call("t1")]),
      user("c"),
      result("t1"),
    ],
    messages: ['U "a" "b"', "A ?t1", 'U =t1 "c"'],
    repairs: ["failed-turn-dropped r2", "user-merged r3", "result-moved r6", "user-merged r5"],
  },
  {
    title: "a call stored twice is known by what it asks, whatever the order of its fields",
    records: [
      user("a"),
      assistant([call("t1", { a: 1, b: { c: 2, d: 3 } })]),
      assistant([call("t1", { b: { d: 3, c: 2 }, a: 1 })]),
      result("t1"),
    ],
    messages: ['U "a"', "A ?t1", "U =t1"],
    repairs: ["duplicate-call r3"],
  },
  {
    title: "two user messages in a row become one, whichever shape they have",
    records: [user("plain"), user([text("blocks")]), assistant("a"), assistant([text("b")])],
    messages: ['U "plain" "blocks"', 'A "a" "b"'],
    repairs: ["user-merged r2", "assistant-merged r4"],
  },
  {
    title: "a reply stored block by block keeps its thinking, and is no part of the reply before it",
    records: [
      user("hi"),
      partOf("m1", thought, false),
      partOf("m1", call("t1"), true),
      result("t1"),
      partOf("m2", thought, false),
      partOf("m2", text("a"), true),
      partOf("m2", call("t2"), true),
      result("t2"),
      partOf("m3", text("b"), false),
    ],
    messages: ['U "hi"', "A thinking ?t1", "U =t1", 'A thinking "a" ?t2', "U =t2", 'A "b"'],
    repairs: ["assistant-merged r3", "assistant-merged r6", "assistant-merged r7"],
  },
  {
    title: "a reply of which only the thinking was stored is left out",
    records: [user("hi"), partOf("m1", thought, false), user("still there?"), partOf("m2", text("yes"), false)],
    messages: ['U "hi" "still there?"', 'A "yes"'],
    repairs: ["thinking-removed r2", "empty-message-removed r2", "user-merged r3"],
  },
];

describe("a log for Anthropic", () => {
  it.each(cases)("$title", ({ records, messages, repairs = [] }) => {
    const rendering = render(records);
    expect(shape(rendering)).toEqual(messages);
    expect(rules(rendering).toSorted()).toEqual([...repairs].toSorted());
  });
});
