#include "compiler/space/rules/loop_nest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;

StmtPtr MakeLoop(LoopBuilder& out, int64_t extent, LoopKind kind,
                 const std::function<StmtPtr(const Affine& var)>& body,
                 int64_t unroll) {
  if (extent == 1) return body(Affine());
  if (kind == LoopKind::kSerial && unroll >= extent) {
    kind = LoopKind::kUnrolled;
  }
  const int var = out.NewVar();
  StmtPtr inner = body(Affine::Var(var));
  return loop::For(var, extent, kind, std::move(inner),
                   kind == LoopKind::kSerial ? unroll : 1);
}

StmtPtr ForTiles(
    LoopBuilder& out, const Affine& start, int64_t extent, int64_t tile,
    LoopKind kind,
    const std::function<StmtPtr(const Affine& start, int64_t extent)>& body) {
  std::vector<StmtPtr> parts;
  const int64_t whole = extent / tile;
  if (whole > 0) {
    parts.push_back(MakeLoop(out, whole, kind, [&](const Affine& var) {
      return body(start + var * tile, tile);
    }));
  }
  if (extent % tile > 0) {
    parts.push_back(body(start + whole * tile, extent % tile));
  }
  return loop::Block(std::move(parts));
}

StmtPtr ForVectors(LoopBuilder& out, const VectorTile& tile,
                   const std::function<StmtPtr(const VectorPosition&)>& body) {
  std::vector<StmtPtr> parts;
  if (tile.full > 0) {
    parts.push_back(
        MakeLoop(out, tile.full, LoopKind::kUnrolled, [&](const Affine& v) {
          return MakeLoop(
              out, tile.lanes, LoopKind::kVector, [&](const Affine& lane) {
                const Affine slot = v * tile.lanes + lane;
                return body({.piece = 0, .position = slot, .slot = slot});
              });
        }));
  }
  if (tile.partial > 0) {
    parts.push_back(
        MakeLoop(out, tile.partial, LoopKind::kVector, [&](const Affine& lane) {
          return body({.piece = 1,
                       .position = lane + tile.full * tile.lanes,
                       .slot = lane});
        }));
  }
  return loop::Block(std::move(parts));
}

RegisterTile::RegisterTile(LoopBuilder& out, const std::string& name,
                           DType dtype, int64_t rows, const VectorTile& tile)
    : out_(out), dtype_(dtype), buffers_{-1, -1} {
  row_elements_ = {tile.full * tile.lanes, tile.partial};
  for (int piece : {0, 1}) {
    if (row_elements_[piece] == 0) continue;
    buffers_[piece] = out.AddBuffer({.name = name,
                                     .dtype = dtype,
                                     .elements = rows * row_elements_[piece],
                                     .scope = loop::Scope::kRegister});
  }
}

Affine RegisterTile::Offset(const Affine& row, const VectorPosition& at) const {
  return row * row_elements_[at.piece] + at.slot;
}

loop::ValuePtr RegisterTile::Load(const Affine& row,
                                  const VectorPosition& at) const {
  const int id = buffers_[at.piece];
  return loop::Load(out_.buffer(id), id, Offset(row, at));
}

StmtPtr RegisterTile::Store(const Affine& row, const VectorPosition& at,
                            loop::ValuePtr value, Reduction accumulate) const {
  return loop::Store(buffers_[at.piece], Offset(row, at),
                     loop::Cast(std::move(value), dtype_), accumulate);
}

StmtPtr ForRowsAndVectors(
    LoopBuilder& out, int64_t rows, const VectorTile& tile,
    const std::function<StmtPtr(const Affine& row, const VectorPosition&)>&
        body) {
  return MakeLoop(out, rows, LoopKind::kUnrolled, [&](const Affine& row) {
    return ForVectors(out, tile,
                      [&](const VectorPosition& at) { return body(row, at); });
  });
}

}  // namespace regatta
