// Images of the kernel emitter: offsets become columns and rows of pixels.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/codegen/c_like/kernel_emitter.h"

namespace regatta::c_like {

using loop::kPixelElements;

// Whether the pixel at `column` + `from` is one of a row of `row` elements: by
// the range of its variables, or by a guard that counts equal parts of the row.
bool KernelEmitter::StaysInRow(const Form& column, int from, int64_t row,
                               const std::vector<FormGuard>& guards) const {
  int64_t last = column.constant + from;
  bool rising = last >= 0;
  for (const auto& [name, coeff] : column.terms) {
    const auto binding =
        std::find_if(vars_.begin(), vars_.end(),
                     [&](const auto& v) { return v.second.name == name; });
    last += coeff * binding->second.span;
    rising = rising && coeff >= 0;
  }
  if (rising && last + kPixelElements <= row) return true;
  return std::any_of(guards.begin(), guards.end(), [&](const FormGuard& guard) {
    if (row % guard.bound != 0 || guard.form.lane != 0) return false;
    const int64_t part = row / guard.bound;
    const int64_t within = column.constant + from - part * guard.form.constant;
    return within >= 0 && within + kPixelElements <= part &&
           column.terms.size() == guard.form.terms.size() &&
           std::equal(
               column.terms.begin(), column.terms.end(),
               guard.form.terms.begin(), [&](const auto& a, const auto& b) {
                 return a.first == b.first && a.second == part * b.second;
               });
  });
}

KernelEmitter::Pixel KernelEmitter::PixelAt(
    int id, const Form& form, int from,
    const std::vector<FormGuard>& guards) const {
  const int64_t row = buffer(id).image_row;
  Form in_row, rows;
  for (const auto& [name, coeff] : form.terms) {
    Form& part = coeff % row == 0 ? rows : in_row;
    part.terms.emplace_back(name, &part == &rows ? coeff / row : coeff);
  }
  const int64_t above = (form.constant + from) / row;
  in_row.constant = form.constant - above * row;
  rows.constant = above;
  if (StaysInRow(in_row, from, row, guards)) {
    Form column;
    column.constant = (in_row.constant + from) / kPixelElements;
    for (const auto& [name, coeff] : in_row.terms) {
      column.terms.emplace_back(name, coeff / kPixelElements);
    }
    return {Text(column, 0), Text(rows, 0)};
  }
  Form pixel;
  pixel.constant = (form.constant + from) / kPixelElements;
  for (const auto& [name, coeff] : form.terms) {
    pixel.terms.emplace_back(name, coeff / kPixelElements);
  }
  const std::string text = Text(pixel, 0);
  const int64_t pixels = row / kPixelElements;
  return {absl::StrCat("(", text, ") % ", pixels),
          absl::StrCat("(", text, ") / ", pixels)};
}

KernelEmitter::Val KernelEmitter::LoadPixels(
    int id, const Form& form, const std::vector<FormGuard>& guards) {
  CHECK(form.lane == 1 && lanes_.count % kPixelElements == 0)
      << buffer(id).name;
  const DType dtype = buffer(id).dtype;
  Val value;
  for (int from = 0; from < lanes_.count; from += kPixelElements) {
    const std::string name = absl::StrCat("x", next_name_++);
    const Pixel pixel = PixelAt(id, form, from, guards);
    LoadedRun run =
        dialect_.images()->Load(Place(id), dtype, pixel.x, pixel.y, name);
    Line(run.declaration);
    for (std::string& element : run.elements) {
      value.push_back(std::move(element));
    }
  }
  return value;
}

void KernelEmitter::StorePixels(int id, const Form& form, const Val& value) {
  CHECK(form.lane == 1 && lanes_.count % kPixelElements == 0)
      << buffer(id).name;
  for (int from = 0; from < lanes_.count; from += kPixelElements) {
    const Pixel pixel = PixelAt(id, form, from, {});
    Line(dialect_.images()->Store(
        Place(id), buffer(id).dtype, pixel.x, pixel.y,
        Val(value.begin() + from, value.begin() + from + kPixelElements)));
  }
}

}  // namespace regatta::c_like
