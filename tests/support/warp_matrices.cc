#include "tests/support/warp_matrices.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "compiler/interp/scalar.h"
#include "compiler/lower/intrinsics.h"
#include "compiler/module/dtype.h"

namespace regatta {
namespace {

constexpr int kRows = 8;  // of a matrix that is loaded

// Where element `e` of a lane's share of an operand with `rows` rows (for b:
// columns) of `depth` stands.
struct Place {
  int row, depth;
};
Place PlaceIn(int rows, int per_word, int lane, int64_t e) {
  const int word = static_cast<int>(e) / per_word;
  const int blocks = rows / kRows;  // words go over blocks of rows first
  return {lane / 4 + kRows * (word % blocks),
          word / blocks * 4 * per_word + lane % 4 * per_word +
              static_cast<int>(e) % per_word};
}

using Matrix = std::vector<std::vector<double>>;

Matrix Gather(int rows, int depth, int per_word, const LaneElement& from) {
  Matrix matrix(rows, std::vector<double>(depth));
  for (int lane = 0; lane < loop::kWarp; ++lane) {
    for (int64_t e = 0; e < rows * depth / loop::kWarp; ++e) {
      const Place at = PlaceIn(rows, per_word, lane, e);
      matrix[at.row][at.depth] = from(lane, e);
    }
  }
  return matrix;
}

}  // namespace

void LoadMatrices(int matrices, bool turned, int per_word,
                  const std::function<double(int lane, int64_t column)>& row,
                  const LaneElement& to) {
  for (int m = 0; m < matrices; ++m) {
    for (int lane = 0; lane < loop::kWarp; ++lane) {
      for (int e = 0; e < per_word; ++e) {
        int r = lane / 4, c = lane % 4 * per_word + e;
        if (turned) std::swap(r, c);
        to(lane, m * per_word + e) = row(kRows * m + r, c);
      }
    }
  }
}

void MultiplyFragments(const ProductForm& form, const LaneElement& c,
                       const LaneElement& a, const LaneElement& b) {
  const int per_word = static_cast<int>(4 / DTypeBytes(form.type));
  const DType sum = IsFloat(form.type) ? DType::kF32 : DType::kI32;
  const Matrix rows = Gather(form.rows, form.depth, per_word, a);
  const Matrix columns = Gather(form.cols, form.depth, per_word, b);
  for (int lane = 0; lane < loop::kWarp; ++lane) {
    for (int i = 0; i < form.rows * form.cols / loop::kWarp; ++i) {
      double& element = c(lane, i);
      const std::vector<double>& x = rows[lane / 4 + kRows * (i / 2)];
      const std::vector<double>& y = columns[lane % 4 * 2 + i % 2];
      for (int d = 0; d < form.depth; ++d) {
        element = std::isnan(element + x[d] * y[d])
                      ? std::numeric_limits<double>::quiet_NaN()
                      : ReduceStep(Reduction::kSum, element, x[d] * y[d], sum);
      }
    }
  }
}

}  // namespace regatta
