#include "compiler/space/rules/transpose_emitter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/space/rules/accesses.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;

std::optional<TransposeShape> MatchTranspose(const Workload& w, int stage) {
  const Stage& s = w.stages[stage];
  if (s.reduction != Reduction::kNone || s.indices.size() < 2) {
    return std::nullopt;
  }
  TransposeShape shape{.stage = stage, .across = s.indices.back()};
  for (const Expr* access : Accesses(s.value)) {
    const Affine form = FlatForm(w, *access);
    const int64_t step = form.Coeff(shape.across);
    if (step == 0 || step == 1 || CanLeave(w, *access)) continue;
    for (int index : s.indices) {
      if (index == shape.across || form.Coeff(index) != 1) continue;
      if (shape.along < 0) shape.along = index;
      if (shape.along == index) shape.turned.push_back(access);
    }
  }
  if (shape.along < 0) return std::nullopt;
  for (int index : s.indices) {
    if (index != shape.across && index != shape.along) {
      shape.others.push_back(index);
    }
  }
  return shape;
}

void TransposeEmitter::Emit() {
  parallel_left_ = tiling_.parallel;
  out_.AddKernel(
      absl::StrCat("transpose_", out_.workload().tensors[stage().tensor].name),
      Nest(0));
}

// Parallel for the first loop that has iterations to share.
LoopKind TransposeEmitter::NextKind(int64_t trips) {
  if (!parallel_left_ || trips < 2) return LoopKind::kSerial;
  parallel_left_ = false;
  return LoopKind::kParallel;
}

StmtPtr TransposeEmitter::Nest(size_t depth) {
  if (depth == shape_.others.size()) return Blocks();
  const int index = shape_.others[depth];
  return MakeLoop(out_, Extent(index), NextKind(Extent(index)),
                  [&](const Affine& var) {
                    bound_[index] = var;
                    return Nest(depth + 1);
                  });
}

StmtPtr TransposeEmitter::Blocks() {
  const auto along =
      [&](const std::function<StmtPtr(const IndexRange&)>& body) {
        const int64_t extent = Extent(shape_.along);
        return ForTiles(out_, Affine(), extent, tiling_.along_block,
                        NextKind(extent / tiling_.along_block),
                        [&](const Affine& start, int64_t size) {
                          return body({start, size});
                        });
      };
  const auto across =
      [&](const std::function<StmtPtr(const IndexRange&)>& body) {
        const int64_t extent = Extent(shape_.across);
        return ForTiles(out_, Affine(), extent, tiling_.across_block,
                        NextKind(extent / tiling_.across_block),
                        [&](const Affine& start, int64_t size) {
                          return body({start, size});
                        });
      };
  if (tiling_.across_outside) {
    return across([&](const IndexRange& a) {
      return along([&](const IndexRange& l) { return Rectangle(l, a); });
    });
  }
  return along([&](const IndexRange& l) {
    return across([&](const IndexRange& a) { return Rectangle(l, a); });
  });
}

StmtPtr TransposeEmitter::Rectangle(const IndexRange& along,
                                    const IndexRange& across) {
  int64_t size = tiling_.lanes;
  while (size > 1 && size > std::min(along.extent, across.extent)) size /= 2;
  if (size < 2) return Plain(along, across);
  const int64_t columns = along.extent / size, rows = across.extent / size;
  const auto along_loop = [&](const std::function<StmtPtr(const Affine&)>& f) {
    return MakeLoop(out_, columns, LoopKind::kSerial, [&](const Affine& var) {
      return f(along.start + var * size);
    });
  };
  const auto across_loop = [&](const std::function<StmtPtr(const Affine&)>& f) {
    return MakeLoop(out_, rows, LoopKind::kSerial, [&](const Affine& var) {
      return f(across.start + var * size);
    });
  };
  std::vector<StmtPtr> parts;
  if (tiling_.across_inside) {
    parts.push_back(along_loop([&](const Affine& l) {
      return across_loop([&](const Affine& a) { return Square(l, a, size); });
    }));
  } else {
    parts.push_back(across_loop([&](const Affine& a) {
      return along_loop([&](const Affine& l) { return Square(l, a, size); });
    }));
  }
  const int64_t along_rest = along.extent - columns * size;
  const int64_t across_rest = across.extent - rows * size;
  if (along_rest > 0) {
    parts.push_back(Rectangle({along.start + columns * size, along_rest},
                              {across.start, rows * size}));
  }
  if (across_rest > 0) {
    parts.push_back(
        Rectangle(along, {across.start + rows * size, across_rest}));
  }
  return loop::Block(std::move(parts));
}

// Index values at (along, across).
TransposeEmitter::Bind TransposeEmitter::BindAt(const Affine& along,
                                                const Affine& across) const {
  std::map<int, Affine> bound = bound_;
  bound[shape_.along] = along;
  bound[shape_.across] = across;
  return [bound = std::move(bound)](int index) {
    const auto it = bound.find(index);
    CHECK(it != bound.end()) << "index " << index << " is not bound";
    return it->second;
  };
}

StmtPtr TransposeEmitter::StoreAt(const Bind& bind, loop::ValuePtr value,
                                  bool streaming) const {
  return loop::Store(
      target_.buffer, target_.offset(bind),
      loop::Cast(std::move(value), out_.buffer(target_.buffer).dtype),
      Reduction::kNone, streaming);
}

StmtPtr TransposeEmitter::Square(const Affine& along, const Affine& across,
                                 int64_t size) {
  const Workload& w = out_.workload();
  std::map<const Expr*, int> tiles;  // [across][along] in registers
  std::vector<StmtPtr> body;
  for (const Expr* access : shape_.turned) {
    const int tile = out_.AddBuffer({.name = "tile",
                                     .dtype = w.tensors[access->tensor].dtype,
                                     .elements = size * size,
                                     .scope = loop::Scope::kRegister});
    tiles[access] = tile;
    body.push_back(
        MakeLoop(out_, size, LoopKind::kUnrolled, [&](const Affine& row) {
          return MakeLoop(
              out_, size, LoopKind::kVector, [&](const Affine& lane) {
                return loop::Store(
                    tile, row * size + lane,
                    out_.LoadTensor(*access,
                                    BindAt(along + lane, across + row)));
              });
        }));
  }
  body.push_back(
      MakeLoop(out_, size, LoopKind::kUnrolled, [&](const Affine& column) {
        return MakeLoop(out_, size, LoopKind::kVector, [&](const Affine& lane) {
          const auto hook =
              [&](const Expr& access) -> std::optional<loop::ValuePtr> {
            const auto it = tiles.find(&access);
            if (it == tiles.end()) return std::nullopt;
            return loop::Load(out_.buffer(it->second), it->second,
                              lane * size + column);
          };
          const Bind bind = BindAt(along + column, across + lane);
          // Parts of a line are never streamed.
          return StoreAt(bind, out_.Translate(stage().value, bind, hook),
                         tiling_.streaming && size == tiling_.lanes);
        });
      }));
  return loop::Block(std::move(body));
}

StmtPtr TransposeEmitter::Plain(const IndexRange& along,
                                const IndexRange& across) {
  return MakeLoop(
      out_, along.extent, LoopKind::kSerial, [&](const Affine& column) {
        return ForTiles(
            out_, across.start, across.extent, tiling_.lanes, LoopKind::kSerial,
            [&](const Affine& start, int64_t extent) {
              return ForVectors(
                  out_, VectorTile::Of(extent, tiling_.lanes),
                  [&](const VectorPosition& at) {
                    const Bind bind =
                        BindAt(along.start + column, start + at.position);
                    return StoreAt(bind, out_.Translate(stage().value, bind));
                  });
            });
      });
}

}  // namespace regatta
