#include "compiler/space/rules/device/tiles_emitter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/device/device_nest.h"
#include "compiler/space/rules/fused_stages.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;
using loop::ValuePtr;

namespace {

int64_t PitchA(const TilesTiling& t) { return t.Rows() + t.pad; }

}  // namespace

bool FitsImage(const Workload& w, const ContractionShape& shape) {
  const TensorDecl& b = w.tensors[shape.b->tensor];
  return (b.dtype == DType::kF32 || b.dtype == DType::kF16) &&
         shape.b_contiguous && !shape.b->pad_value &&
         shape.b->subscripts.back() == Affine::Var(shape.vector) &&
         b.shape.back() % loop::kPixelElements == 0;
}

int64_t LocalElementsA(const TilesTiling& t) {
  return t.local_a ? t.k_slice * PitchA(t) : 0;
}

int64_t LocalElementsB(const TilesTiling& t) {
  return t.local_b ? t.k_slice * t.Columns() : 0;
}

TilesEmitter::TilesEmitter(const ContractionShape& shape,
                           const TilesTiling& tiling, int stage_count,
                           LoopBuilder& out)
    : shape_(shape), t_(tiling), stage_count_(stage_count), out_(out) {
  const Workload& w = out.workload();
  const auto add_local = [&](const char* name, const Expr& access,
                             int64_t elements) {
    return out.AddBuffer({.name = name,
                          .dtype = w.tensors[access.tensor].dtype,
                          .elements = elements,
                          .scope = loop::Scope::kLocal});
  };
  if (t_.local_a) local_a_ = add_local("a_tile", *shape.a, LocalElementsA(t_));
  if (t_.local_b) local_b_ = add_local("b_tile", *shape.b, LocalElementsB(t_));
  for (int64_t v = 0; v < t_.vectors; ++v) {
    sums_.emplace_back(out, absl::StrCat("sum", v), stage().accumulator,
                       t_.rows, VectorTile{.lanes = t_.lanes});
    if (t_.half_sums > 1) {
      half_sums_.emplace_back(out, absl::StrCat("half", v), DType::kF16,
                              t_.rows, VectorTile{.lanes = t_.lanes});
    }
  }
}

// A thread for each pixel.
void TilesEmitter::EmitImage() {
  const TensorDecl& tensor = out_.workload().tensors[shape_.b->tensor];
  const int from = out_.TensorBuffer(shape_.b->tensor);
  const int64_t row = tensor.shape.back();
  const int64_t pixels = row / loop::kPixelElements;
  image_b_ = out_.AddBuffer({.name = absl::StrCat(tensor.name, "_image"),
                             .dtype = tensor.dtype,
                             .elements = tensor.Elements(),
                             .image_row = row});
  const int64_t threads = std::min(t_.tx * t_.ty, pixels);
  const int y = out_.NewVar(), x = out_.NewVar(), thread = out_.NewVar();
  const Affine pixel = Affine::Var(x) * threads + Affine::Var(thread);
  StmtPtr copy = MakeLoop(
      out_, loop::kPixelElements, LoopKind::kVector, [&](const Affine& lane) {
        const Affine at =
            Affine::Var(y) * row + pixel * loop::kPixelElements + lane;
        return loop::Store(image_b_, at,
                           loop::Load(out_.buffer(from), from, at));
      });
  out_.AddKernel(
      absl::StrCat("image_", tensor.name, "_of_",
                   out_.workload().tensors[stage().tensor].name),
      loop::For(
          y, tensor.Elements() / row, LoopKind::kGroup,
          loop::For(x, CeilDiv(pixels, threads), LoopKind::kGroup,
                    loop::For(thread, threads, LoopKind::kThread,
                              loop::If({{pixel, pixels}}, std::move(copy))))));
}

void TilesEmitter::Emit() {
  if (t_.image_b) EmitImage();
  std::map<int, int64_t> tiled = {
      {shape_.vector, CeilDiv(Extent(shape_.vector), t_.Columns())}};
  if (t_.row_index >= 0) {
    tiled[t_.row_index] = CeilDiv(Extent(t_.row_index), t_.Rows());
  }
  const auto body = [&](const std::map<int, Affine>& piece,
                        const std::array<Affine, 2>& thread) {
    bound_ = piece;
    thread_ = thread;
    group_column_ = piece.at(shape_.vector);
    if (t_.row_index >= 0) {
      first_row_ = piece.at(t_.row_index) * t_.Rows();
    }
    return Thread();
  };
  out_.AddKernel(
      absl::StrCat("tiles_", out_.workload().tensors[stage().tensor].name),
      OverGrid(out_, GridAxes(out_.workload(), stage(), tiled), {t_.tx, t_.ty},
               body));
}

Affine TilesEmitter::ColumnOf(int64_t v) const {
  return (thread_[0] + v * t_.tx) * t_.lanes;
}

loop::Guard TilesEmitter::RowGuard(const Affine& row) const {
  return {first_row_ + thread_[1] * t_.rows + row, Extent(t_.row_index)};
}

// Counts vectors, so that whoever reads the guard sees that whole ones are
// inside.
loop::Guard TilesEmitter::VectorGuard(int64_t v) const {
  return {group_column_ * (t_.tx * t_.vectors) + thread_[0] + v * t_.tx,
          Extent(shape_.vector) / t_.lanes};
}

TilesEmitter::Bind TilesEmitter::BindAt(const Affine& row, int64_t v,
                                        const Affine& position) const {
  std::map<int, Affine> bound = bound_;
  bound[shape_.vector] = group_column_ * t_.Columns() + ColumnOf(v) + position;
  if (t_.row_index >= 0) bound[t_.row_index] = RowGuard(row).form;
  return [bound = std::move(bound)](int index) {
    const auto it = bound.find(index);
    CHECK(it != bound.end()) << "index " << index << " is not bound";
    return it->second;
  };
}

StmtPtr TilesEmitter::Thread() {
  const VectorTile tile{.lanes = t_.lanes};
  std::vector<StmtPtr> program;
  for (const RegisterTile& sum : sums_) {
    program.push_back(ForRowsAndVectors(
        out_, t_.rows, tile, [&](const Affine& row, const VectorPosition& at) {
          return sum.Store(row, at, loop::Const(0, stage().accumulator));
        }));
  }
  program.push_back(SummedLoops(0));
  program.push_back(Results());
  return loop::Block(std::move(program));
}

StmtPtr TilesEmitter::SummedLoops(size_t depth) {
  if (depth < shape_.k.size()) {
    const int index = shape_.k[depth];
    if (index == t_.split_k) return SummedLoops(depth + 1);
    return MakeLoop(out_, Extent(index), LoopKind::kSerial,
                    [&](const Affine& var) {
                      bound_[index] = var;
                      return SummedLoops(depth + 1);
                    });
  }
  return ForTiles(out_, Affine(), Extent(t_.split_k), t_.k_slice,
                  LoopKind::kSerial, [&](const Affine& start, int64_t extent) {
                    return Slice({start, extent});
                  });
}

// Nobody overwrites a tile that another thread still reads, and nobody reads
// one before it is whole.
StmtPtr TilesEmitter::Slice(const IndexRange& range) {
  std::vector<StmtPtr> parts;
  if (t_.local_a || t_.local_b) parts.push_back(loop::Barrier());
  if (t_.local_a) {
    parts.push_back(CopyTile(*shape_.a, local_a_, PitchA(t_), t_.row_index,
                             first_row_, t_.Rows(), range));
  }
  if (t_.local_b) {
    parts.push_back(CopyTile(*shape_.b, local_b_, t_.Columns(), shape_.vector,
                             group_column_ * t_.Columns(), t_.Columns(),
                             range));
  }
  if (t_.local_a || t_.local_b) parts.push_back(loop::Barrier());
  const int64_t together = t_.half_sums;
  if (together > 1) {
    if (range.extent >= together) {
      parts.push_back(MakeLoop(
          out_, range.extent / together, LoopKind::kSerial,
          [&](const Affine& var) {
            return HalfSteps(var * together, together, range);
          },
          t_.unroll / together));
    }
    if (const int64_t rest = range.extent % together; rest > 0) {
      parts.push_back(HalfSteps(Affine(range.extent - rest), rest, range));
    }
    return loop::Block(std::move(parts));
  }
  parts.push_back(MakeLoop(
      out_, range.extent, LoopKind::kSerial,
      [&](const Affine& var) {
        bound_[t_.split_k] = range.start + var;
        return Step(var);
      },
      t_.unroll));
  return loop::Block(std::move(parts));
}

StmtPtr TilesEmitter::HalfSteps(const Affine& start, int64_t count,
                                const IndexRange& range) {
  const VectorTile tile{.lanes = t_.lanes};
  const auto for_all = [&](auto statement) {
    std::vector<StmtPtr> parts;
    for (int64_t v = 0; v < t_.vectors; ++v) {
      parts.push_back(
          ForRowsAndVectors(out_, t_.rows, tile,
                            [&](const Affine& row, const VectorPosition& at) {
                              return statement(v, row, at);
                            }));
    }
    return loop::Block(std::move(parts));
  };
  std::vector<StmtPtr> parts;
  parts.push_back(
      for_all([&](int64_t v, const Affine& row, const VectorPosition& at) {
        return half_sums_[v].Store(row, at, loop::Const(0, DType::kF16));
      }));
  parts.push_back(
      MakeLoop(out_, count, LoopKind::kUnrolled, [&](const Affine& var) {
        bound_[t_.split_k] = range.start + start + var;
        return Step(start + var);
      }));
  parts.push_back(for_all([&](int64_t v, const Affine& row,
                              const VectorPosition& at) {
    return sums_[v].Store(
        row, at, loop::Cast(half_sums_[v].Load(row, at), stage().accumulator),
        Reduction::kSum);
  }));
  return loop::Block(std::move(parts));
}

// Threads next to each other copy elements next to each other in memory.
StmtPtr TilesEmitter::CopyTile(const Expr& access, int local, int64_t pitch,
                               int across, const Affine& first, int64_t count,
                               const IndexRange& range) {
  const Affine form = FlatForm(out_.workload(), access);
  const bool slice_first = form.Coeff(t_.split_k) == 1;
  // Per direction: elements, and the threads that share them.
  const int64_t k_threads = slice_first ? t_.tx : t_.ty;
  const int64_t across_threads = slice_first ? t_.ty : t_.tx;
  const Affine k_thread = thread_[slice_first ? 0 : 1];
  const Affine across_thread = thread_[slice_first ? 1 : 0];
  return MakeLoop(
      out_, CeilDiv(count, across_threads), LoopKind::kSerial,
      [&](const Affine& u) {
        return MakeLoop(
            out_, CeilDiv(range.extent, k_threads), LoopKind::kSerial,
            [&](const Affine& w) {
              const Affine k = w * k_threads + k_thread;
              const Affine at = u * across_threads + across_thread;
              std::map<int, Affine> bound = bound_;
              bound[t_.split_k] = range.start + k;
              std::vector<loop::Guard> exists;
              if (across >= 0) {
                bound[across] = first + at;
                exists.push_back({bound[across], Extent(across)});
              }
              const ValuePtr value = WithGuards(
                  out_.LoadTensor(access,
                                  [&](int index) { return bound.at(index); }),
                  exists);
              return loop::If({{k, range.extent}, {at, count}},
                              loop::Store(local, k * pitch + at, value));
            });
      });
}

ValuePtr TilesEmitter::LoadB(const Bind& bind,
                             std::vector<loop::Guard> guards) const {
  if (!t_.image_b) {
    return WithGuards(out_.LoadTensor(*shape_.b, bind), std::move(guards));
  }
  // Its elements stand as in the tensor.
  return loop::Load(
      out_.buffer(image_b_), image_b_,
      out_.TensorOffset(shape_.b->tensor, shape_.b->subscripts, bind),
      std::move(guards));
}

StmtPtr TilesEmitter::Accumulate(const Affine& row, int64_t v,
                                 const VectorPosition& at,
                                 const RegisterTile& b, int a) const {
  const Bind bind = BindAt(row, v, at.position);
  const auto value_a = [&] {
    if (a >= 0) return loop::Load(out_.buffer(a), a, row);
    return WithGuards(out_.LoadTensor(*shape_.a, bind),
                      {RowGuard(row), VectorGuard(v)});
  };
  if (t_.half_sums > 1) {
    return half_sums_[v].Store(
        row, at, loop::Binary(BinaryOp::kMul, value_a(), b.Load(Affine(), at)),
        Reduction::kSum);
  }
  const auto hook = [&](const Expr& access) -> std::optional<ValuePtr> {
    return &access == shape_.b ? b.Load(Affine(), at) : value_a();
  };
  return sums_[v].Store(row, at, out_.Translate(stage().value, bind, hook),
                        Reduction::kSum);
}

// Loads each element of A and B once and multiplies all pairs.
StmtPtr TilesEmitter::Step(const Affine& in_slice) {
  const Workload& w = out_.workload();
  const VectorTile tile{.lanes = t_.lanes};
  std::vector<StmtPtr> parts;
  std::vector<RegisterTile> b;
  for (int64_t v = 0; v < t_.vectors; ++v) {
    b.emplace_back(out_, absl::StrCat("b", v),
                   w.tensors[shape_.b->tensor].dtype, 1, tile);
    parts.push_back(ForVectors(out_, tile, [&](const VectorPosition& at) {
      ValuePtr value =
          t_.local_b
              ? loop::Load(out_.buffer(local_b_), local_b_,
                           in_slice * t_.Columns() + ColumnOf(v) + at.position)
              : LoadB(BindAt(Affine(), v, at.position), {VectorGuard(v)});
      return b[v].Store(Affine(), at, std::move(value));
    }));
  }
  const int a =
      shape_.vector_in_a
          ? -1
          : out_.AddBuffer({.name = "a",
                            .dtype = w.tensors[shape_.a->tensor].dtype,
                            .elements = t_.rows,
                            .scope = loop::Scope::kRegister});
  parts.push_back(
      MakeLoop(out_, t_.rows, LoopKind::kUnrolled, [&](const Affine& row) {
        std::vector<StmtPtr> body;
        if (a >= 0) {
          ValuePtr value =
              t_.local_a
                  ? loop::Load(
                        out_.buffer(local_a_), local_a_,
                        in_slice * PitchA(t_) + thread_[1] * t_.rows + row)
                  : WithGuards(
                        out_.LoadTensor(*shape_.a, BindAt(row, 0, Affine())),
                        {RowGuard(row)});
          body.push_back(loop::Store(a, row, std::move(value)));
        }
        for (int64_t v = 0; v < t_.vectors; ++v) {
          body.push_back(ForVectors(out_, tile, [&](const VectorPosition& at) {
            return Accumulate(row, v, at, b[v], a);
          }));
        }
        return loop::Block(std::move(body));
      }));
  return loop::Block(std::move(parts));
}

StmtPtr TilesEmitter::Results() {
  const VectorTile tile{.lanes = t_.lanes};
  const FusedStages fused(out_, shape_.stage, stage_count_);
  return MakeLoop(out_, t_.rows, LoopKind::kUnrolled, [&](const Affine& row) {
    std::vector<StmtPtr> parts;
    for (int64_t v = 0; v < t_.vectors; ++v) {
      parts.push_back(loop::If(
          {RowGuard(row), VectorGuard(v)},
          fused.Store(sums_[v], row, tile, [&](const Affine& position) {
            return BindAt(row, v, position);
          })));
    }
    return loop::Block(std::move(parts));
  });
}

}  // namespace regatta
