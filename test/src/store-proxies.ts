import type { SessionStore } from "@throughline/core";

/** Describes a store call that is about to be made. */
export interface StoreCall {
  readonly name: string;
  readonly args: readonly unknown[];
  /** Makes the call and returns the store's result: a promise, or pages to iterate. */
  run(): unknown;
}

/**
 * Returns a store with `members` in place of its own.
 * @example replaceMembers(store, { load: () => Promise.resolve(null) })
 */
export function replaceMembers(store: SessionStore, members: Partial<SessionStore>): SessionStore {
  return new Proxy(store, {
    get(target, name) {
      if (Object.hasOwn(members, name)) return Reflect.get(members, name) as unknown;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
}

/**
 * Returns a store that passes each call to `around`, whose result becomes the call's result. Disposal is not passed.
 * @example aroundCalls(store, ({ name, run }) => (counts[name]++, run()))
 */
export function aroundCalls(store: SessionStore, around: (call: StoreCall) => unknown): SessionStore {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      if (typeof name === "symbol") return member.bind(target) as unknown;
      return (...args: unknown[]): unknown =>
        around({ name, args, run: () => Reflect.apply(member, target, args) as unknown });
    },
  });
}
