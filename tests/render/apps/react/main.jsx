import { createElement as h, lazy, Suspense, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { BrowserRouter, Link, Route, Routes, useParams } from "react-router";
import { load, sections } from "../shared.js";

const Item = lazy(() => import("./item.jsx")); // a chunk of its own

function Home() {
  useEffect(() => { document.title = "Drinks"; }, []);
  return h("ul", null, sections.map((name) => h("li", { key: name }, h(Link, { to: `/${name}` }, name))));
}

function Section() {
  const { section } = useParams();
  const [found, setFound] = useState(null);
  useEffect(() => { load(section).then(setFound); }, [section]);
  useEffect(() => { if (found) document.title = found.title; }, [found]);
  if (!found) return h("p", null, "Loading");
  return h("main", null, h("h1", null, found.title), found.items.map((item) =>
    h(Link, { key: item.id, to: `/${section}/${item.id}` }, item.name)));
}

createRoot(document.getElementById("root")).render(
  h(BrowserRouter, null, h(Suspense, { fallback: "Loading" }, h(Routes, null,
    h(Route, { path: "/", element: h(Home) }),
    h(Route, { path: "/:section", element: h(Section) }),
    h(Route, { path: "/:section/:id", element: h(Item) })))));
