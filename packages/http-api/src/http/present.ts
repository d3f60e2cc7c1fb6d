/** Drops members that are undefined, because `exactOptionalPropertyTypes` forbids passing them. */
export type Present<Value> = { [Name in keyof Value]: Exclude<Value[Name], undefined> };

export function present<Value extends object>(value: Value): Present<Value> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Present<Value>;
}
