// What the three applications have in common: the section and the item are fetched, after a while, by the page that shows them.
export const sections = ["tea", "coffee", "cocoa", "juice"];

export async function load(path) {
  await new Promise((resolve) => setTimeout(resolve, 400)); // as a debounced store would
  const response = await fetch(`/api/${path}.json`);
  return response.json();
}
