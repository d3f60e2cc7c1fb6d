import { ThroughlineError, type SessionStore } from "@throughline/core";

/** A store whose connection can be taken away and given back. */
export interface LeavingStore {
  readonly store: SessionStore;
  /** `fails`: every operation is refused. `hangs`: it begins once the store is back. `forgets`: appends are done, and say they are not. */
  leave(how: "fails" | "hangs" | "forgets"): void;
  comeBack(): void;
}

export function createLeavingStore(inner: SessionStore): LeavingStore {
  let how: "fails" | "hangs" | "forgets" | null = null;
  let back: (() => void)[] = [];
  const away = (outcome: "not-applied" | "unknown"): ThroughlineError =>
    new ThroughlineError("STORE_UNREACHABLE", "The store is away.", { outcome });
  const asked = async (name: string, operation: () => unknown): Promise<unknown> => {
    if (how === "hangs") await new Promise<void>((resolve) => back.push(resolve));
    if (how === "fails") throw away("not-applied");
    const result = await operation();
    if (how === "forgets" && name === "append") throw away("unknown");
    return result;
  };
  const operations = new Set(["load", "save", "append", "list", "remove"]);
  const store = new Proxy(inner, {
    get(target, name: string) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      const call = (...args: readonly unknown[]): unknown => Reflect.apply(member, target, args) as unknown;
      if (operations.has(name)) return async (...args: readonly unknown[]) => asked(name, () => call(...args));
      if (name !== "read") return call;
      return async function* (...args: readonly unknown[]) {
        yield* (await asked(name, () => call(...args))) as AsyncIterable<unknown>;
      };
    },
  });
  return {
    store,
    leave: (next) => void (how = next),
    comeBack() {
      how = null;
      for (const resolve of back.splice(0)) resolve();
      back = [];
    },
  };
}
