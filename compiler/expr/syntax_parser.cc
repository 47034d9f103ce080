#include "compiler/expr/syntax_parser.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/expr/lexer.h"
#include "compiler/expr/token_reader.h"
#include "compiler/expr/value_parser.h"
#include "compiler/expr/words.h"

namespace regatta {
namespace {

// The position of `name` in `things`; appended when it is new.
int Intern(std::vector<NamedThing>& things, const Token& token) {
  for (size_t i = 0; i < things.size(); ++i) {
    if (things[i].name == token.text) return static_cast<int>(i);
  }
  things.push_back({std::string(token.text), token.offset});
  return static_cast<int>(things.size()) - 1;
}

bool Has(const std::vector<NamedThing>& things, std::string_view name) {
  return std::any_of(
      things.begin(), things.end(),
      [&](const NamedThing& thing) { return thing.name == name; });
}

bool Contains(const std::vector<int>& ids, int id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

class SyntaxParser {
 public:
  SyntaxParser(std::string_view text, std::vector<Token> tokens)
      : in_(text, std::move(tokens)) {
    out_.text = text;
  }

  absl::StatusOr<WorkloadSyntax> Parse() {
    do {
      // A `;` may close the last stage too.
      if (in_.At("where") && !out_.stages.empty()) break;
      RETURN_IF_ERROR(ParseStage());
    } while (in_.Accept(";"));
    out_.extents.resize(out_.indices.size());
    out_.bindings.resize(out_.tensors.size());
    if (in_.Peek().kind == Token::Kind::kEnd) {
      return in_.Expected(
          absl::StrCat("'where' and the extent of every index, as in 'where ",
                       out_.indices[0].name, "=512'"));
    }
    RETURN_IF_ERROR(in_.Expect(
        "where", "or an operator: the stage above is complete here"));
    do {
      RETURN_IF_ERROR(ParseBinding());
    } while (in_.Accept(","));
    if (in_.Peek().kind != Token::Kind::kEnd) {
      return in_.Expected("',' and another binding, or the end of the text");
    }
    for (size_t i = 0; i < out_.indices.size(); ++i) {
      if (out_.extents[i].has_value()) continue;
      return ErrorAt(
          out_.text, out_.indices[i].offset,
          absl::StrCat("index '", out_.indices[i].name, "' has no extent; add ",
                       out_.indices[i].name, "=N after 'where'"));
    }
    return std::move(out_);
  }

 private:
  absl::StatusOr<int> InternIndex(const Token& token) {
    if (token.kind != Token::Kind::kName) {
      return in_.Expected("the name of an index");
    }
    if (IsReserved(token.text)) {
      return in_.Error(token, absl::StrCat("'", std::string(token.text),
                                           "' is a word of the language and "
                                           "names no index"));
    }
    if (Has(out_.tensors, token.text)) {
      return in_.Error(token, absl::StrCat("'", std::string(token.text),
                                           "' is a tensor here and cannot be "
                                           "an index too"));
    }
    const int id = Intern(out_.indices, token);
    if (out_.indices.size() > kMaxIndices) {
      return in_.Error(token,
                       absl::StrCat("more than ", kMaxIndices, " indices"));
    }
    return id;
  }

  absl::StatusOr<int> InternTensor(const Token& token) {
    if (IsReserved(token.text)) {
      return in_.Error(token, absl::StrCat("'", std::string(token.text),
                                           "' is a word of the language and "
                                           "names no tensor"));
    }
    if (Has(out_.indices, token.text)) {
      return in_.Error(token, absl::StrCat("'", std::string(token.text),
                                           "' is an index here and cannot be a "
                                           "tensor too"));
    }
    const int id = Intern(out_.tensors, token);
    if (out_.tensors.size() > kMaxTensors) {
      return in_.Error(token,
                       absl::StrCat("more than ", kMaxTensors, " tensors"));
    }
    return id;
  }

  // Plain, distinct names up to `close`; none may be in `taken`.
  absl::StatusOr<std::vector<int>> ParseIndexList(
      std::string_view close, const std::vector<int>& taken) {
    std::vector<int> ids;
    do {
      const Token token = in_.Peek();
      ASSIGN_OR_RETURN(const int id, InternIndex(token));
      if (Contains(ids, id) || Contains(taken, id)) {
        return in_.Error(token, absl::StrCat("index '", std::string(token.text),
                                             "' is bound twice"));
      }
      if (ids.size() == kMaxRank) {
        return in_.Error(
            token, absl::StrCat("more than ", kMaxRank, " indices in a row"));
      }
      in_.Take();
      ids.push_back(id);
    } while (in_.Accept(","));
    RETURN_IF_ERROR(
        in_.Expect(close, "or ',': here stand plain index names only"));
    return ids;
  }

  // Whether a reduction starts here: `max(i,j) X[i,j]` does, `max(i,j) - 1` and
  // max(A[i], 0) do not.
  bool AtReduction() const {
    if (!FindWord(kReductionWords, in_.Peek().text) || !in_.At("(", 1)) {
      return false;
    }
    if (in_.At("sum") || in_.At("prod")) return true;
    size_t ahead = 2;
    size_t names = 0;
    while (in_.AtName(ahead)) {
      ++names;
      ++ahead;
      if (in_.At(")", ahead)) break;
      if (!in_.At(",", ahead)) return false;
      ++ahead;
    }
    if (names == 0 || !in_.At(")", ahead)) return false;
    const Token& next = in_.Peek(ahead + 1);
    if (next.kind == Token::Kind::kNumber || in_.At("(", ahead + 1) ||
        (next.kind == Token::Kind::kName && next.text != "where")) {
      return true;
    }
    return names != 2;
  }

  absl::Status ParseStage() {
    if (!in_.AtName() || !in_.At("[", 1)) {
      if (in_.AtName()) in_.Take();
      return in_.Expected("a stage such as C[i,j] = ...");
    }
    const Token name = in_.Take();
    StageSyntax stage{.offset = name.offset};
    ASSIGN_OR_RETURN(stage.tensor, InternTensor(name));
    RETURN_IF_ERROR(in_.Expect("[", "after a tensor's name"));
    ASSIGN_OR_RETURN(stage.indices, ParseIndexList("]", {}));
    RETURN_IF_ERROR(in_.Expect("=", "after the tensor that is assigned"));
    if (AtReduction()) {
      stage.reduction = *FindWord(kReductionWords, in_.Take().text);
      RETURN_IF_ERROR(in_.Expect("(", "after a reduction's name"));
      ASSIGN_OR_RETURN(stage.reduce_indices,
                       ParseIndexList(")", stage.indices));
    }
    const NameScope scope = {
        .index = [&](const Token& t) { return BoundIndex(t, stage); },
        .tensor = [&](const Token& t) { return InternTensor(t); }};
    ASSIGN_OR_RETURN(stage.value, ValueParser(in_, scope).Value());
    out_.stages.push_back(std::move(stage));
    return absl::OkStatus();
  }

  absl::StatusOr<int> BoundIndex(const Token& token, const StageSyntax& stage) {
    for (const std::vector<int>* ids :
         {&stage.indices, &stage.reduce_indices}) {
      for (int id : *ids) {
        if (out_.indices[id].name == token.text) return id;
      }
    }
    const std::string name(token.text);
    if (Has(out_.tensors, name)) {
      return in_.Error(
          token, absl::StrCat("tensor '", name, "' needs subscripts: ", name,
                              "[...]"));
    }
    if (IsReserved(name)) {
      return in_.Error(token, absl::StrCat("'", name,
                                           "' is a word of the language and no "
                                           "value"));
    }
    return in_.Error(
        token, absl::StrCat("index '", name,
                            "' is not bound: it stands "
                            "neither on the left-hand side of this stage nor "
                            "in its reduction"));
  }

  absl::Status ParseBinding() {
    const Token name = in_.Peek();
    if (!in_.AtName()) {
      return in_.Expected("a binding: index=512, dtype=f32 or T=f32[4,4]");
    }
    in_.Take();
    if (!in_.Accept("=")) {
      return in_.Expected(
          absl::StrCat("'=' after '", std::string(name.text), "'"));
    }
    if (std::find(bound_.begin(), bound_.end(), name.text) != bound_.end()) {
      return in_.Error(
          name, absl::StrCat("'", std::string(name.text), "' is given twice"));
    }
    bound_.push_back(name.text);
    if (name.text == "dtype") {
      ASSIGN_OR_RETURN(out_.default_dtype, ParseType());
      return absl::OkStatus();
    }
    for (size_t i = 0; i < out_.indices.size(); ++i) {
      if (out_.indices[i].name != name.text) continue;
      const auto what = [&] {
        return absl::StrCat("the extent of '", std::string(name.text), "'");
      };
      ASSIGN_OR_RETURN(out_.extents[i], in_.TakePositive(what, kMaxExtent));
      return absl::OkStatus();
    }
    for (size_t i = 0; i < out_.tensors.size(); ++i) {
      if (out_.tensors[i].name != name.text) continue;
      ASSIGN_OR_RETURN(out_.bindings[i], ParseTensorBinding(name));
      return absl::OkStatus();
    }
    return in_.Error(name, absl::StrCat("'", std::string(name.text),
                                        "' is no index and no tensor of this "
                                        "expression"));
  }

  absl::StatusOr<DType> ParseType() {
    const Token token = in_.Peek();
    const auto type = ParseTensorDType(token.text);
    if (!type.has_value()) {
      return in_.Expected("an element type: f32, f16, bf16, i32 or i8");
    }
    in_.Take();
    return *type;
  }

  absl::StatusOr<TensorBinding> ParseTensorBinding(const Token& name) {
    TensorBinding binding{.offset = name.offset};
    ASSIGN_OR_RETURN(binding.dtype, ParseType());
    RETURN_IF_ERROR(in_.Expect("[", "and the tensor's shape"));
    do {
      if (binding.shape.size() == kMaxRank) {
        return in_.Error(in_.Peek(), absl::StrCat("a tensor has at most ",
                                                  kMaxRank, " dimensions"));
      }
      const auto what = [&] {
        return absl::StrCat("dimension ", binding.shape.size(), " of '",
                            std::string(name.text), "'");
      };
      ASSIGN_OR_RETURN(const int64_t extent,
                       in_.TakePositive(what, kMaxExtent));
      binding.shape.push_back(extent);
    } while (in_.Accept(","));
    RETURN_IF_ERROR(in_.Expect("]", "after the shape"));
    return binding;
  }

  TokenReader in_;
  WorkloadSyntax out_;
  std::vector<std::string_view> bound_;  // names with a binding
};

}  // namespace

absl::StatusOr<WorkloadSyntax> ParseSyntax(std::string_view text) {
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Lex(text));
  return SyntaxParser(text, std::move(tokens)).Parse();
}

}  // namespace regatta
