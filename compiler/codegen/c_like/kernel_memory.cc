// Addresses, loads and stores of the kernel emitter.
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "compiler/codegen/c_like/kernel_emitter.h"

namespace regatta::c_like {
namespace {

std::string Sanitised(const std::string& name) {
  std::string clean = name;
  for (char& c : clean) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c >= '0' && c <= '9');
    if (!word) c = '_';
  }
  return clean;
}

bool IsNarrowFloat(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

}  // namespace

KernelEmitter::Form KernelEmitter::Resolve(const Affine& form) const {
  Form resolved;
  resolved.constant = form.constant();
  int64_t& reach = resolved.reach;
  for (const Affine::Term& term : form.terms()) {
    const Binding& binding = vars_.at(term.var);
    resolved.constant += term.coeff * binding.constant;
    if (!binding.name.empty()) {
      resolved.terms.emplace_back(binding.name, term.coeff);
      reach += std::abs(term.coeff) * binding.span;
    }
    if (lanes_.count > 1 && term.var == lanes_.var) {
      resolved.lane = term.coeff;
      reach += std::abs(term.coeff) * lanes_.count;
    }
  }
  reach += std::abs(resolved.constant);
  resolved.wide = reach > std::numeric_limits<int32_t>::max();
  return resolved;
}

std::optional<std::vector<KernelEmitter::FormGuard>>
KernelEmitter::ResolveGuards(const std::vector<loop::Guard>& guards) const {
  std::vector<FormGuard> resolved;
  for (const loop::Guard& guard : guards) {
    FormGuard g{Resolve(guard.form), guard.bound};
    if (g.form.terms.empty()) {
      // Without loops around it, a guard is decided here, if all lanes agree.
      const int64_t last = g.form.constant + g.form.lane * (lanes_.count - 1);
      const auto holds = [&](int64_t at) { return at >= 0 && at < g.bound; };
      if (holds(g.form.constant) && holds(last)) continue;
      if (g.form.lane == 0) return std::nullopt;
    }
    resolved.push_back(std::move(g));
  }
  return resolved;
}

// Lanes that step by one inside a block that the bound does not cut agree.
bool KernelEmitter::Uniform(const FormGuard& guard) const {
  const Form& form = guard.form;
  if (form.lane == 0) return true;
  const int64_t n = lanes_.count;
  return form.lane == 1 && form.constant % n == 0 && guard.bound % n == 0 &&
         std::all_of(form.terms.begin(), form.terms.end(),
                     [&](const auto& term) { return term.second % n == 0; });
}

std::string KernelEmitter::Text(const Form& form, int64_t lane) const {
  const int64_t constant = form.constant + form.lane * lane;
  std::vector<std::string> parts;
  for (const auto& [name, coeff] : form.terms) {
    const std::string factor =
        form.wide
            ? absl::StrCat("(", std::string(dialect_.long_type()), ")", name)
            : name;
    parts.push_back(coeff == 1 ? factor : absl::StrCat(factor, " * ", coeff));
  }
  std::string text = absl::StrJoin(parts, " + ");
  if (text.empty()) return absl::StrCat(constant);
  if (constant > 0) absl::StrAppend(&text, " + ", constant);
  if (constant < 0) absl::StrAppend(&text, " - ", -constant);
  return text;
}

// 0 <= form < bound in one unsigned comparison.
std::string KernelEmitter::Condition(const std::vector<FormGuard>& guards,
                                     int64_t lane) const {
  return absl::StrJoin(
      guards, " && ", [&](std::string* out, const FormGuard& guard) {
        const bool wide = guard.form.wide ||
                          guard.bound > std::numeric_limits<int32_t>::max();
        absl::StrAppend(
            out, "(unsigned ",
            wide ? std::string(dialect_.long_type()) : std::string("int"), ")(",
            Text(guard.form, lane), ") < ", guard.bound, "u");
      });
}

std::string KernelEmitter::Place(int id) const {
  return absl::StrCat("b", id, "_", Sanitised(buffer(id).name));
}

// What is a multiple of the swizzle's period moves whole periods: it is added
// behind it, and may be a constant.
std::string KernelEmitter::ElementText(int id, const Form& form,
                                       int64_t lane) const {
  const loop::Buffer& of = buffer(id);
  if (of.swizzle == 0) return Text(form, lane);
  const int64_t period = 8 * of.swizzle;
  Form inside = form, outside = form;
  const int64_t constant = form.constant + form.lane * lane;
  inside.lane = outside.lane = 0;
  inside.constant = constant % period;
  outside.constant = constant - inside.constant;
  std::erase_if(inside.terms,
                [&](const auto& term) { return term.second % period == 0; });
  std::erase_if(outside.terms,
                [&](const auto& term) { return term.second % period != 0; });
  std::string text =
      inside.terms.empty()
          ? absl::StrCat(loop::SwizzledElement(of, inside.constant))
          : absl::StrCat("RG@swizzle(", Text(inside, 0), ", ", of.swizzle, ", ",
                         loop::SwizzleChunk(of), ")");
  if (!outside.terms.empty() || outside.constant != 0) {
    absl::StrAppend(&text, " + ", Text(outside, 0));
  }
  return text;
}

std::string KernelEmitter::Register(int id, int64_t element) {
  registers_.insert({id, element});
  return absl::StrCat("r", id, "_", element);
}

std::string KernelEmitter::FromStorage(DType dtype,
                                       const std::string& text) const {
  if (dtype == DType::kF16 && !dialect_.has_half()) {
    return absl::StrCat("RG@f16(", text, ")");
  }
  if (dtype == DType::kBF16) return absl::StrCat("RG@bf16(", text, ")");
  return text;
}

std::string KernelEmitter::ToStorage(DType dtype,
                                     const std::string& text) const {
  if (dtype == DType::kF16) return absl::StrCat("RG@to_f16(", text, ")");
  if (dtype == DType::kBF16) return absl::StrCat("RG@to_bf16(", text, ")");
  if (dtype == DType::kI8) {
    return absl::StrCat("(", dialect_.StorageType(dtype), ")(", text, ")");
  }
  return text;
}

KernelEmitter::Val KernelEmitter::Load(const loop::Value& load, bool raw) {
  const DType dtype = buffer(load.buffer).dtype;
  const std::string pad =
      raw ? RawLiteral(load.constant, dtype) : Literal(load.constant, dtype);
  const auto guards = ResolveGuards(load.guards);
  if (!guards) return {pad};
  const Form form = Resolve(load.offset);
  const bool in_registers = buffer(load.buffer).scope == loop::Scope::kRegister;
  const bool uniform =
      form.lane == 0 &&
      std::all_of(guards->begin(), guards->end(),
                  [](const FormGuard& guard) { return guard.form.lane == 0; });
  const int count = uniform ? 1 : lanes_.count;
  if (in_registers) {
    CHECK(form.terms.empty()) << buffer(load.buffer).name;
    Val value;
    for (int i = 0; i < count; ++i) {
      const std::string element =
          Register(load.buffer, form.constant + form.lane * i);
      value.push_back(guards->empty()
                          ? element
                          : absl::StrCat("(", Condition(*guards, i), " ? ",
                                         element, " : ", pad, ")"));
    }
    return value;
  }
  std::string key = absl::StrCat(load.buffer, "|", count, "|", form.lane, "|",
                                 Text(form, 0), "|", raw);
  if (!guards->empty()) {
    absl::StrAppend(&key, "|", Condition(*guards, 0), "|",
                    Condition(*guards, count - 1), "|", pad);
  }
  for (const auto& known : known_) {
    const auto found = known.find(key);
    if (found != known.end()) return found->second.value;
  }
  const bool runs =
      count > 1 && form.lane == 1 &&
      std::all_of(guards->begin(), guards->end(),
                  [&](const FormGuard& guard) { return Uniform(guard); });
  Val value = runs ? LoadRuns(load.buffer, form, *guards, pad, raw)
                   : LoadScalars(load.buffer, form, count, *guards, pad, raw);
  known_.back()[key] = {load.buffer, value};
  return value;
}

KernelEmitter::Val KernelEmitter::LoadScalars(
    int id, const Form& form, int count, const std::vector<FormGuard>& guards,
    const std::string& pad, bool raw) {
  const DType dtype = buffer(id).dtype;
  const std::string type =
      raw ? dialect_.StorageType(dtype) : dialect_.RegisterType(dtype);
  Val value;
  for (int i = 0; i < count; ++i) {
    std::string text =
        absl::StrCat(Place(id), "[", ElementText(id, form, i), "]");
    if (!raw) text = FromStorage(dtype, text);
    if (!guards.empty()) {
      text = absl::StrCat(Condition(guards, i), " ? ", text, " : ", pad);
    }
    value.push_back(absl::StrCat("x", next_name_++));
    Line(absl::StrCat("const ", type, " ", value.back(), " = ", text, ";"));
  }
  return value;
}

KernelEmitter::Val KernelEmitter::LoadRuns(int id, const Form& form,
                                           const std::vector<FormGuard>& guards,
                                           const std::string& pad, bool raw) {
  if (guards.empty()) return RunsAt(id, form, guards, raw);
  const DType dtype = buffer(id).dtype;
  const std::string type =
      raw ? dialect_.StorageType(dtype) : dialect_.RegisterType(dtype);
  Val value;
  for (int i = 0; i < lanes_.count; ++i) {
    value.push_back(absl::StrCat("x", next_name_++));
    Line(absl::StrCat(type, " ", value.back(), " = ", pad, ";"));
  }
  Open(absl::StrCat("if (", Condition(guards, 0), ")"));
  const Val loaded = RunsAt(id, form, guards, raw);
  for (int i = 0; i < lanes_.count; ++i) {
    Line(absl::StrCat(value[i], " = ", loaded[i], ";"));
  }
  Close();
  return value;
}

// All lanes, in as few accesses as their addresses allow.
KernelEmitter::Val KernelEmitter::RunsAt(int id, const Form& form,
                                         const std::vector<FormGuard>& guards,
                                         bool raw) {
  if (IsImage(id)) return LoadPixels(id, form, guards);
  const DType dtype = buffer(id).dtype;
  Val value;
  while (static_cast<int>(value.size()) < lanes_.count) {
    const int from = static_cast<int>(value.size());
    const int length = RunLength(id, form, from);
    Val elements;
    if (length == 1) {
      elements = {
          absl::StrCat(Place(id), "[", ElementText(id, form, from), "]")};
    } else {
      const std::string name = absl::StrCat("x", next_name_++);
      LoadedRun run = dialect_.Load(RunAt(id, form, from, length), name);
      Line(run.declaration);
      elements = std::move(run.elements);
    }
    for (const std::string& element : elements) {
      value.push_back(raw ? element
                          : Named(FromStorage(dtype, element),
                                  dialect_.RegisterType(dtype)));
    }
  }
  return value;
}

// How many lanes from `from` on one access moves.
int KernelEmitter::RunLength(int id, const Form& form, int from) const {
  const int64_t bytes = DTypeBytes(buffer(id).dtype);
  int64_t length = 1;
  while (length * 2 * bytes <= dialect_.vector_bytes() &&
         length * 2 <= kMaxRunElements && from + length * 2 <= lanes_.count &&
         (!dialect_.must_align() ||
          RunAt(id, form, from, static_cast<int>(length * 2)).aligned)) {
    length *= 2;
  }
  return static_cast<int>(length);
}

Run KernelEmitter::RunAt(int id, const Form& form, int from, int count) const {
  Run run;
  run.space =
      buffer(id).scope == loop::Scope::kLocal ? Space::kLocal : Space::kGlobal;
  run.dtype = buffer(id).dtype;
  run.address = absl::StrCat(Place(id), " + ", ElementText(id, form, from));
  run.count = count;
  int64_t step = form.constant + from;
  for (const auto& [name, coeff] : form.terms) step = std::gcd(step, coeff);
  run.aligned = step % count == 0;
  return run;
}

void KernelEmitter::StoreTo(int id, const Form& form, Val value, bool raw) {
  const DType dtype = buffer(id).dtype;
  const bool one = lanes_.count == 1 || form.lane == 0;
  // The last iteration's value stays.
  if (one) value = {value.back()};
  if (buffer(id).scope == loop::Scope::kRegister) {
    CHECK(form.terms.empty()) << buffer(id).name;
    if (!one) Broadcast(value, dtype, lanes_.count);
    for (size_t i = 0; i < value.size(); ++i) {
      Line(absl::StrCat(
          Register(id, form.constant + form.lane * static_cast<int64_t>(i)),
          " = ", value[i], ";"));
    }
    return;
  }
  Forget(id);
  if (IsImage(id)) {
    if (value.size() == 1) Broadcast(value, dtype, lanes_.count);
    StorePixels(id, form, value);
    return;
  }
  if (!raw) {
    if (!one && value.size() == 1 && IsNarrowFloat(dtype)) {
      value = {Named(ToStorage(dtype, value[0]), dialect_.StorageType(dtype))};
    } else {
      for (std::string& text : value) text = ToStorage(dtype, text);
    }
  }
  if (one) {
    Line(absl::StrCat(Place(id), "[", ElementText(id, form, 0),
                      "] = ", value[0], ";"));
    return;
  }
  if (value.size() == 1) {
    value = Val(lanes_.count, Named(value[0], dialect_.StorageType(dtype)));
  }
  for (int from = 0; from < lanes_.count;) {
    const int length = form.lane == 1 ? RunLength(id, form, from) : 1;
    if (length == 1) {
      Line(absl::StrCat(Place(id), "[", ElementText(id, form, from),
                        "] = ", value[from], ";"));
    } else {
      Line(dialect_.Store(
          RunAt(id, form, from, length),
          Val(value.begin() + from, value.begin() + from + length)));
    }
    from += length;
  }
}

void KernelEmitter::Forget(int id) {
  for (auto& known : known_) {
    std::erase_if(known,
                  [&](const auto& entry) { return entry.second.buffer == id; });
  }
}

// Other threads may have stored to all but the inputs.
void KernelEmitter::ForgetShared() {
  for (auto& known : known_) {
    std::erase_if(known, [&](const auto& entry) {
      return buffer(entry.second.buffer).scope != loop::Scope::kInput;
    });
  }
}

void KernelEmitter::ForgetStoredIn(const loop::Stmt& stmt) {
  if (stmt.kind == loop::Stmt::Kind::kBarrier ||
      stmt.kind == loop::Stmt::Kind::kIntrinsic) {
    ForgetShared();
  }
  if (stmt.kind == loop::Stmt::Kind::kStore) Forget(stmt.buffer);
  for (const loop::StmtPtr& child : stmt.body) ForgetStoredIn(*child);
}

}  // namespace regatta::c_like
