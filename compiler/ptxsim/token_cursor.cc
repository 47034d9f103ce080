#include "compiler/ptxsim/token_cursor.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace regatta::ptxsim {
namespace {

// Of a module: more than any has, and little enough that hostile text cannot
// make us take all memory.
constexpr uint64_t kMaxVariableBytes = 64 << 20;

}  // namespace

absl::Status TokenCursor::Error(std::string_view message) const {
  return absl::InvalidArgumentError(
      absl::StrCat("PTX line ", Peek().line, ": ", ToAbsl(message)));
}

absl::Status TokenCursor::Expect(std::string_view text) {
  if (TakeIf(text)) return absl::OkStatus();
  return Error(absl::StrCat("'", ToAbsl(text), "' expected, found '",
                            Peek().Shown(), "'"));
}

absl::StatusOr<std::string> TokenCursor::Identifier(std::string_view what) {
  if (Peek().kind != Token::Kind::kIdentifier) {
    return Error(
        absl::StrCat(ToAbsl(what), " expected, found '", Peek().Shown(), "'"));
  }
  return std::string(Take().text);
}

absl::StatusOr<uint64_t> TokenCursor::Count(std::string_view what,
                                            uint64_t limit) {
  if (Peek().kind != Token::Kind::kInteger || Peek().integer > limit) {
    return Error(absl::StrCat(ToAbsl(what), " expected, a number up to ", limit,
                              ", found '", Peek().Shown(), "'"));
  }
  return Take().integer;
}

absl::StatusOr<Variable> TokenCursor::ParseVariable(Space space,
                                                    bool external) {
  Variable variable = {
      .space = space, .external = external, .line = Peek().line};
  bool has_type = false;
  bool has_alignment = false;
  while (Peek().kind == Token::Kind::kDirective) {
    const std::string_view word = Peek().text;
    if (word == ".align") {
      Take();
      ASSIGN_OR_RETURN(const uint64_t alignment, Count("alignment", 4096));
      if (!std::has_single_bit(alignment)) {
        return Error("an alignment is a power of two");
      }
      // `.ptr .align` of a parameter speaks of what it points to.
      if (!has_type) {
        variable.alignment = static_cast<uint32_t>(alignment);
        has_alignment = true;
      }
    } else if (space == Space::kParam &&
               (word == ".ptr" || word == ".global" || word == ".shared" ||
                word == ".local" || word == ".const")) {
      Take();
    } else if (const auto type = ParseType(word);
               type.has_value() && TypeBytes(*type) > 0 && !has_type) {
      Take();
      variable.type = *type;
      has_type = true;
    } else {
      return Error(absl::StrCat("'", ToAbsl(word), "' in a declaration"));
    }
  }
  if (!has_type) return Error("a declaration without a type");
  if (!has_alignment) {
    variable.alignment = static_cast<uint32_t>(TypeBytes(variable.type));
  }
  ASSIGN_OR_RETURN(variable.name, Identifier("a variable's name"));
  variable.bytes = TypeBytes(variable.type);
  while (TakeIf("[")) {
    uint64_t extent = 0;
    if (!Peek().Is("]")) {
      ASSIGN_OR_RETURN(extent, Count("array extent", kMaxVariableBytes));
    }
    RETURN_IF_ERROR(Expect("]"));
    variable.bytes *= extent;
    if (variable.bytes > kMaxVariableBytes) {
      return Error(absl::StrCat("variable ", variable.name, " is too large"));
    }
  }
  variable_bytes_ += variable.bytes;
  if (variable_bytes_ > kMaxVariableBytes) {
    return Error("the module's variables are too large");
  }
  if (TakeIf("=")) RETURN_IF_ERROR(ParseInitial(variable));
  return variable;
}

absl::Status TokenCursor::ParseInitial(Variable& variable) {
  if (TakeIf("{")) {
    int depth = 1;  // nested braces of arrays of arrays are flat in memory
    while (depth > 0) {
      if (TakeIf("{")) {
        ++depth;
      } else if (TakeIf("}")) {
        --depth;
      } else if (!TakeIf(",")) {
        RETURN_IF_ERROR(ParseInitialValue(variable));
      }
    }
  } else {
    RETURN_IF_ERROR(ParseInitialValue(variable));
  }
  if (variable.initial.size() > variable.bytes) {
    return Error(absl::StrCat("more values than ", variable.name, " holds"));
  }
  variable.initial.resize(variable.bytes);
  return absl::OkStatus();
}

absl::Status TokenCursor::ParseInitialValue(Variable& variable) {
  const bool negative = TakeIf("-");
  const Token token = Peek();
  uint64_t bits = 0;
  if (token.kind == Token::Kind::kInteger) {
    bits = negative ? -token.integer : token.integer;
  } else if (token.kind == Token::Kind::kFloat32) {
    bits = token.integer ^ (negative ? 0x80000000u : 0);
  } else if (token.kind == Token::Kind::kFloat) {
    const double value = negative ? -token.real : token.real;
    bits = variable.type == Type::kF32
               ? std::bit_cast<uint32_t>(static_cast<float>(value))
               : std::bit_cast<uint64_t>(value);
  } else {
    return Error(
        absl::StrCat("initial value expected, found '", token.Shown(), "'"));
  }
  Take();
  const size_t bytes = TypeBytes(variable.type);
  const size_t old = variable.initial.size();
  if (old + bytes > variable.bytes) {
    return Error(absl::StrCat("more values than ", variable.name, " holds"));
  }
  variable.initial.resize(old + bytes);
  std::memcpy(variable.initial.data() + old, &bits, bytes);
  return absl::OkStatus();
}

}  // namespace regatta::ptxsim
