export function costText(costUsd: number | null): string {
  if (costUsd === null) return "–";
  // Two decimals would show a cheap call as free.
  const decimals = costUsd > 0 && costUsd < 0.01 ? 4 : 2;
  const format = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return `$${costUsd.toLocaleString("en-US", format)}`;
}
