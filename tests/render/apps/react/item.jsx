import { createElement as h, useEffect, useState } from "react";
import { Link, useParams } from "react-router";
import { load } from "../shared.js";

export default function Item() {
  const { section, id } = useParams();
  const [item, setItem] = useState(null);
  useEffect(() => { load(`${section}/${id}`).then(setItem); }, [section, id]);
  useEffect(() => { if (item) document.title = item.name; }, [item]);
  if (!item) return h("p", null, "Loading");
  return h("article", null, h("h1", null, item.name), h("p", null, item.text), h(Link, { to: `/${section}` }, "back"));
}
