import { Component, effect, input, signal } from "@angular/core";
import { RouterLink } from "@angular/router";
import { load } from "../shared.js";

@Component({
  imports: [RouterLink],
  styles: "main { display: grid; }",
  template: `
    @if (found(); as found) {
      <main>
        <h1>{{ found.title }}</h1>
        @for (item of found.items; track item.id) {<a [routerLink]="['/', section(), item.id]">{{ item.name }}</a>}
      </main>
    } @else {<p>Loading</p>}
  `,
})
export class Section {
  section = input.required<string>();
  found = signal<any>(null);
  constructor() {
    effect(() => { load(this.section()).then((value) => { this.found.set(value); document.title = value.title; }); });
  }
}
