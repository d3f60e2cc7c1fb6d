import { existsSync, readFileSync, writeFileSync } from "node:fs";

interface Orders {
  readonly [id: string]: { readonly amount: number; readonly refunds: Readonly<Record<string, number>> };
}

/** The shop, in a file of the current folder. `refund` pays for one `key` once. */
export function createShop(path = "orders.json"): {
  find(id: string): string;
  refund(id: string, amount: number, key: string): string;
} {
  const read = (): Orders =>
    existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Orders) : { A7: { amount: 40, refunds: {} } };
  const order = (id: string): Orders[string] => {
    const found = Object.hasOwn(read(), id) ? read()[id] : undefined;
    if (found === undefined) throw new Error(`There is no order ${id}.`);
    return found;
  };
  return {
    find: (id) => JSON.stringify(order(id)),
    refund(id, amount, key) {
      const { amount: paid, refunds } = order(id);
      if (Object.hasOwn(refunds, key)) return `${refunds[key]} of order ${id} were paid back before, in this turn.`;
      const left = Object.values(refunds).reduce((rest, value) => rest - value, paid);
      if (amount > left) throw new Error(`Only ${left} of order ${id} can be paid back.`);
      writeFileSync(
        path,
        JSON.stringify({ ...read(), [id]: { amount: paid, refunds: { ...refunds, [key]: amount } } }),
      );
      return `Paid back ${amount}.`;
    },
  };
}
