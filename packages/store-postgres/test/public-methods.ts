import type { PostgresStore } from "@throughline/store-postgres";

/**
 * Every method that a store has, its facets' after their names. Asked of the store itself: one that is added and does not
 * stand in a table fails the test that has the table.
 */
export function publicMethods(store: PostgresStore): readonly string[] {
  const own = Object.getOwnPropertyNames(Object.getPrototypeOf(store)).filter((name) => name !== "constructor");
  const facets = Object.entries(store).flatMap(([facet, value]) =>
    typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([name, method]) => (typeof method === "function" ? [`${facet}.${name}`] : []))
      : [],
  );
  return [...own.filter((name) => typeof Reflect.get(store, name) === "function"), ...facets].toSorted();
}
