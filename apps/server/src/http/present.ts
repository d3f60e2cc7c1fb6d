/** The members of an object that are given: an option that is undefined counts as none. */
export type Present<Value> = { [Name in keyof Value]: Exclude<Value[Name], undefined> };

export function present<Value extends object>(value: Value): Present<Value> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Present<Value>;
}
