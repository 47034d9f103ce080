// The micro-kernel of a contraction with instructions that add whole blocks of
// sums of products. Sums are computed for whole blocks, also beyond the edge of
// a tile: what the copies of the operands hold there is not looked at.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/contraction_emitter.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;
using loop::ValuePtr;

// Every sum of the tile: its place among the blocks, its row, its position.
StmtPtr ContractionEmitter::ForSums(
    int64_t rows, const VectorTile& tile,
    const std::function<StmtPtr(const Affine& sum, int64_t row,
                                const VectorPosition&)>& body) {
  const int64_t block_rows = tiling_.products.rows, cols = tiling_.BlockCols();
  const int64_t blocks = RoundUp(tile.Extent(), tile.lanes) / cols;
  std::vector<StmtPtr> parts;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first =
        row / block_rows * blocks * block_rows * cols + row % block_rows * cols;
    if (cols == tile.lanes) {
      parts.push_back(ForVectors(out_, tile, [&](const VectorPosition& at) {
        return body(at.position + first, row, at);
      }));
      continue;
    }
    for (int64_t c = 0; c < tile.Extent(); c += cols) {
      const int64_t whole = tile.full * tile.lanes;
      parts.push_back(MakeLoop(
          out_, std::min(cols, tile.Extent() - c), LoopKind::kVector,
          [&](const Affine& lane) {
            const VectorPosition at{.piece = c < whole ? 0 : 1,
                                    .position = lane + c,
                                    .slot = lane + (c < whole ? c : c - whole)};
            return body(lane + (first + c * block_rows), row, at);
          }));
    }
  }
  return loop::Block(std::move(parts));
}

StmtPtr ContractionEmitter::ProductKernel(int64_t rows,
                                          const VectorTile& tile) {
  const ProductForm& form = tiling_.products;
  const DType type = stage().accumulator;
  const int64_t width = RoundUp(tile.Extent(), tile.lanes);
  const auto add_sums = [&](const std::string& name, int64_t elements) {
    return out_.AddBuffer({.name = name,
                           .dtype = type,
                           .elements = elements,
                           .scope = loop::Scope::kRegister});
  };
  const auto fill = [&](int buffer, int64_t elements, int64_t lanes,
                        double value) {
    return ForVectors(
        out_, VectorTile::Of(elements, lanes), [&](const VectorPosition& at) {
          return loop::Store(buffer, at.position,
                             loop::Const(value, out_.buffer(buffer).dtype));
        });
  };
  const int64_t sums = RoundUp(rows, form.rows) * width;
  const int acc = add_sums("acc", sums);
  std::vector<StmtPtr> body;
  body.push_back(fill(acc, sums, tile.lanes, 0));
  if (!k_part_.first) {
    body.push_back(ForSums(
        rows, tile,
        [&](const Affine& sum, int64_t row, const VectorPosition& at) {
          return loop::Store(
              acc, sum,
              loop::Load(out_.buffer(partial_), partial_,
                         ResultOffset(BindTile(Affine(row), at.position))));
        }));
  }
  // A's elements are too large by what makes them unsigned; that much times the
  // sums of B is too much.
  int bias = -1, ones = -1;
  if (form.unsigned_a) {
    bias = add_sums("bias", width);
    ones = out_.AddBuffer({.name = "ones",
                           .dtype = DType::kI8,
                           .elements = form.depth,
                           .scope = loop::Scope::kRegister});
    body.push_back(fill(bias, width, tile.lanes, 0));
    body.push_back(fill(ones, form.depth, form.depth, -AddToA()));
  }
  body.push_back(KLoops(
      0, rows, [&] { return ProductStep(acc, bias, ones, rows, tile); }));
  const RegisterTile result(out_, "sum", type, rows, tile);
  body.push_back(ForSums(
      rows, tile,
      [&](const Affine& sum, int64_t row, const VectorPosition& at) {
        ValuePtr value = loop::Load(out_.buffer(acc), acc, sum);
        if (bias >= 0) {
          value =
              loop::Binary(BinaryOp::kSub, std::move(value),
                           loop::Load(out_.buffer(bias), bias, at.position));
        }
        return result.Store(Affine(row), at, std::move(value));
      }));
  body.push_back(StoreResults(result, rows, tile));
  return loop::Block(std::move(body));
}

// Every block of the tile once, for one group of summed values.
StmtPtr ContractionEmitter::ProductStep(int acc, int bias, int ones,
                                        int64_t rows, const VectorTile& tile) {
  const ProductForm& form = tiling_.products;
  const int64_t cols = tiling_.BlockCols();
  const int64_t blocks = RoundUp(tile.Extent(), tile.lanes) / cols;
  const auto b = [&](const Affine& block) {
    return LoadOperand(b_, BindTile(Affine(), block * cols));
  };
  const auto product_block = [&](int block_rows) {
    return loop::ProductBlock{.rows = block_rows,
                              .cols = static_cast<int>(cols),
                              .depth = form.depth,
                              .unsigned_a = form.unsigned_a};
  };
  std::vector<StmtPtr> body;
  if (bias >= 0) {
    body.push_back(
        MakeLoop(out_, blocks, LoopKind::kUnrolled, [&](const Affine& block) {
          return loop::Store(
              bias, block * cols,
              loop::Products(loop::Load(out_.buffer(ones), ones, Affine()),
                             b(block), product_block(1)),
              Reduction::kSum);
        }));
  }
  body.push_back(MakeLoop(
      out_, CeilDiv(rows, form.rows), LoopKind::kUnrolled,
      [&](const Affine& row_block) {
        return MakeLoop(
            out_, blocks, LoopKind::kUnrolled, [&](const Affine& block) {
              const Affine place = row_block * blocks + block;
              return loop::Store(
                  acc, place * (form.rows * cols),
                  loop::Products(LoadA(row_block * form.rows), b(block),
                                 product_block(form.rows)),
                  Reduction::kSum);
            });
      }));
  return loop::Block(std::move(body));
}

}  // namespace regatta
