import { Component, effect, input, signal } from "@angular/core";
import { RouterLink } from "@angular/router";
import { load } from "../shared.js";

@Component({
  imports: [RouterLink],
  template: `
    @if (item(); as item) {
      <article><h1>{{ item.name }}</h1><p>{{ item.text }}</p><a [routerLink]="['/', section()]">back</a></article>
    } @else {<p>Loading</p>}
  `,
})
export class Item {
  section = input.required<string>();
  id = input.required<string>();
  item = signal<any>(null);
  constructor() {
    effect(() => {
      load(`${this.section()}/${this.id()}`).then((value) => { this.item.set(value); document.title = value.name; });
    });
  }
}
