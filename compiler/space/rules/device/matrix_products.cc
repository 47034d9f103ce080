#include "compiler/space/rules/device/matrix_products.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/lower/intrinsics.h"
#include "compiler/space/rules/device/fused_index.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;

namespace {

constexpr int64_t kWordsA = 4;  // of 16 rows
constexpr int64_t kWordsB = 2;  // of 8 columns
constexpr int64_t kRows = 16, kColumns = 8;

}  // namespace

int64_t ProductRegisters(const MatrixTiling& t) {
  const int64_t fragments =
      t.warp_rows / kRows * kWordsA + t.warp_columns / kColumns * kWordsB;
  return t.warp_rows * t.warp_columns / loop::kWarp +
         fragments * (t.ahead ? 2 : 1);
}

int64_t ProductInstructions(const MatrixTilesShape& shape,
                            const MatrixTiling& t) {
  return t.warp_rows / shape.form.rows * (t.warp_columns / kColumns) *
         (t.depth / shape.form.depth);
}

MatrixProducts::MatrixProducts(const MatrixTilesShape& shape,
                               const MatrixTiling& tiling, const MatrixCopy& a,
                               const MatrixCopy& b, bool pairs,
                               LoopBuilder& out)
    : shape_(shape),
      t_(tiling),
      a_(a),
      b_(b),
      pairs_(pairs),
      out_(out),
      per_word_(4 / shape.ElementBytes()) {
  const int64_t slots = t_.ahead ? 2 : 1;
  const auto fragment = [&](const char* name, int64_t elements) {
    return out.AddBuffer({.name = name,
                          .dtype = shape.form.type,
                          .elements = slots * elements,
                          .scope = loop::Scope::kFragment});
  };
  a_words_ = fragment("a_words", StepsA());
  b_words_ = fragment("b_words", StepsB());
  const DType sum = out.workload().stages[shape.contraction.stage].accumulator;
  for (int64_t block = 0; block < blocks(); ++block) {
    sums_.emplace_back(out, absl::StrCat("sum", block), sum,
                       pairs ? rows() : 2 * rows(), Tile());
  }
}

StmtPtr MatrixProducts::WithThread(const Affine& thread,
                                   const std::function<StmtPtr()>& body) {
  struct Part {
    Affine* of;
    int64_t divisor, extent;
  };
  const std::vector<Part> parts = {
      {&pair_, 1, 4},
      {&row_, 4, 8},
      {&in_matrix_, 1, 8},
      {&second_, 8, 2},
      {&third_, 16, 2},
      {&warp_column_, loop::kWarp, t_.WarpsAcross()},
      {&warp_row_, loop::kWarp * t_.WarpsAcross(),
       t_.Warps() / t_.WarpsAcross()}};
  const std::function<StmtPtr(size_t)> from = [&](size_t i) {
    if (i == parts.size()) return body();
    return WithPart(out_, thread, parts[i].divisor, parts[i].extent,
                    [&](const Affine& part) {
                      *parts[i].of = part;
                      return from(i + 1);
                    });
  };
  return from(0);
}

StmtPtr MatrixProducts::Clear() const {
  std::vector<StmtPtr> all;
  for (const RegisterTile& sums : sums_) {
    all.push_back(ForRowsAndVectors(
        out_, pairs_ ? rows() : 2 * rows(), Tile(),
        [&](const Affine& row, const VectorPosition& at) {
          const DType sum =
              out_.workload().stages[shape_.contraction.stage].accumulator;
          return sums.Store(row, at, loop::Const(0, sum));
        }));
  }
  return loop::Block(std::move(all));
}

Affine MatrixProducts::Row(const Affine& row) const {
  return warp_row_ * t_.warp_rows + row * 8 + row_;
}

Affine MatrixProducts::HalfColumn(int64_t block) const {
  return warp_column_ * (t_.warp_columns / 2) + pair_ + block * (kColumns / 2);
}

StmtPtr MatrixProducts::Add(const Affine& stage) const {
  const int64_t steps = t_.depth / shape_.StepElements();
  std::vector<StmtPtr> all;
  for (int64_t step = 0; step < steps; ++step) {
    if (step == 0 || !t_.ahead) all.push_back(LoadStep(stage, step));
    if (t_.ahead && step + 1 < steps) {
      all.push_back(LoadStep(stage, step + 1));
    }
    all.push_back(MultiplyStep(step));
  }
  return loop::Block(std::move(all));
}

StmtPtr MatrixProducts::LoadStep(const Affine& stage, int64_t step) const {
  std::vector<StmtPtr> all;
  for (int64_t i = 0; i < t_.warp_rows / kRows; ++i) {
    all.push_back(LoadA(stage, step, i));
  }
  // Two blocks of columns at a time, as far as they go.
  for (int64_t i = 0; i < blocks(); i += 2) {
    all.push_back(LoadB(stage, step, i, i + 1 < blocks() ? 2 : 1));
  }
  return loop::Block(std::move(all));
}

// Matrices in the order of A's words: rows 0-7 and 8-15 of the first half of
// the step, then of the second.
StmtPtr MatrixProducts::LoadA(const Affine& stage, int64_t step,
                              int64_t block) const {
  const bool turned = !shape_.a.TileAlongSum();
  const int64_t half = shape_.StepElements() / 2;
  const Affine row = turned ? second_ * 8 : in_matrix_ + second_ * 8;
  const Affine summed = turned ? in_matrix_ + third_ * 8 : third_ * half;
  return loop::CallIntrinsic(
      loop::LoadMatrix(4, turned),
      {{.buffer = a_words_,
        .offset = Affine(Slot(step) * StepsA() + block * kWordsA * per_word_)},
       {.buffer = a_.buffer(),
        .offset =
            a_.Offset(stage, warp_row_ * t_.warp_rows + block * kRows + row,
                      summed + step * shape_.StepElements())}});
}

// Both halves of the step for 8 columns, then for the next 8.
StmtPtr MatrixProducts::LoadB(const Affine& stage, int64_t step, int64_t block,
                              int64_t blocks) const {
  const bool turned = !shape_.b.TileAlongSum();
  const int64_t half = shape_.StepElements() / 2;
  const Affine next = blocks == 2 ? third_ * kColumns : Affine();
  const Affine column = turned ? next : in_matrix_ + next;
  const Affine summed = turned ? in_matrix_ + second_ * 8 : second_ * half;
  return loop::CallIntrinsic(
      loop::LoadMatrix(static_cast<int>(2 * blocks), turned),
      {{.buffer = b_words_,
        .offset = Affine(Slot(step) * StepsB() + block * kWordsB * per_word_)},
       {.buffer = b_.buffer(),
        .offset = b_.Offset(
            stage, warp_column_ * t_.warp_columns + block * kColumns + column,
            summed + step * shape_.StepElements())}});
}

StmtPtr MatrixProducts::MultiplyStep(int64_t step) const {
  const ProductForm& form = shape_.form;
  const std::string name = loop::MultiplyMatrices(form);
  // Instructions that it takes for a step of 16 rows.
  const int64_t deep = shape_.StepElements() / form.depth;
  const int64_t high = kRows / form.rows;
  std::vector<StmtPtr> all;
  for (int64_t block = 0; block < blocks(); ++block) {
    for (int64_t k = 0; k < deep; ++k) {
      const int64_t b_word = block * kWordsB + k;
      for (int64_t r = 0; r < high; ++r) {
        // Words of A: rows first, then depth.
        const int64_t a_word = 2 * k + r;
        all.push_back(MakeLoop(
            out_, t_.warp_rows / kRows, LoopKind::kUnrolled,
            [&](const Affine& i) {
              return loop::CallIntrinsic(
                  name,
                  {{.buffer = sums_[block].buffer(), .offset = i * 4 + 2 * r},
                   {.buffer = a_words_,
                    .offset = i * (kWordsA * per_word_) +
                              (Slot(step) * StepsA() + a_word * per_word_)},
                   {.buffer = b_words_,
                    .offset =
                        Affine(Slot(step) * StepsB() + b_word * per_word_)}});
            }));
      }
    }
  }
  return loop::Block(std::move(all));
}

}  // namespace regatta
