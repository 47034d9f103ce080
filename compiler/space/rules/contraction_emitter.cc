#include "compiler/space/rules/contraction_emitter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/space/rules/accesses.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;
using loop::ValuePtr;

ContractionEmitter::ContractionEmitter(const ContractionShape& shape,
                                       const ContractionTiling& tiling,
                                       int stage_count, LoopBuilder& out)
    : shape_(shape), tiling_(tiling), stage_count_(stage_count), out_(out) {}

int ContractionEmitter::AddScratch(const std::string& name, DType dtype,
                                   int64_t elements, bool per_thread) {
  return out_.AddBuffer({.name = name,
                         .dtype = dtype,
                         .elements = elements,
                         .scope = loop::Scope::kWorkspace,
                         .per_thread = per_thread});
}

void ContractionEmitter::Emit() {
  const Workload& w = out_.workload();
  any_parallel_ = tiling_.parallel != ContractionTiling::Parallel::kNone;
  levels_ = Levels();
  for (size_t i = 0; i < levels_.size(); ++i) {
    if (levels_[i].in_a) pack_level_ = i + 1;
  }
  // Packing materialises padding; what is not packed needs a padded copy.
  a_ = {.access = shape_.a};
  a_is_packed_ = tiling_.products.rows > 1;
  if (a_is_packed_) {
    a_ = PackPanels(*shape_.a, tiling_.row_index, tiling_.rows,
                    {&shape_.batch, &shape_.m}, AddToA());
  } else if (!tiling_.pack_a &&
             (tiling_.Grouped() ? !ReadsGroupsOfA() : CanLeave(w, *shape_.a))) {
    a_ = PadWhole(*shape_.a, AddToA());
  }
  b_ = {.access = shape_.b};
  if (tiling_.pack_b) {
    b_ = PackPanels(*shape_.b, shape_.vector, tiling_.TileWidth(),
                    {&shape_.batch, &shape_.n}, 0);
  } else if (tiling_.Grouped() || CanLeave(w, *shape_.b)) {
    b_ = PadWhole(*shape_.b, 0);
  }
  const DType result = ResultType();
  if (tiling_.split_k >= 0 && Extent(tiling_.split_k) > tiling_.k_block) {
    const int whole = out_.TensorBuffer(stage().tensor);
    const bool fits = result == stage().accumulator;
    partial_ = fits ? whole
                    : AddScratch("partial", stage().accumulator,
                                 w.tensors[stage().tensor].Elements(), false);
  }
  row_range_ = {Affine(),
                tiling_.row_index < 0 ? 1 : Extent(tiling_.row_index)};
  vector_range_ = {Affine(), Extent(shape_.vector)};
  k_range_ = {Affine(), tiling_.split_k < 0 ? 1 : Extent(tiling_.split_k)};
  out_.AddKernel(absl::StrCat("contraction_", w.tensors[stage().tensor].name),
                 Nest(0));
}

DType ContractionEmitter::ResultType() const {
  return out_.workload().tensors[stage().tensor].dtype;
}

// --- Copies before the main kernel ---

bool ContractionEmitter::ReadsGroupsOfA() const {
  const Workload& w = out_.workload();
  return !tiling_.products.unsigned_a && !CanLeave(w, *shape_.a) &&
         FlatForm(w, *shape_.a).Coeff(tiling_.group) == 1 &&
         Extent(tiling_.group) % tiling_.products.depth == 0;
}

ContractionEmitter::Operand ContractionEmitter::PadWhole(const Expr& access,
                                                         double add) {
  const TensorDecl& tensor = out_.workload().tensors[access.tensor];
  std::map<int, int64_t> varying;
  for (const Affine& form : access.subscripts) {
    for (const Affine::Term& term : form.terms()) {
      varying[term.var] = Extent(term.var);
    }
  }
  const int64_t lanes = CopyLanes(tensor);
  const Box box = BoxOf(access, varying, lanes, Group());
  // Whole blocks of products are read, also where a tile is narrower.
  const int64_t beyond =
      tiling_.Grouped() ? tiling_.TileWidth() * tiling_.products.depth : 0;
  const int buffer = AddScratch(absl::StrCat("padded_", tensor.name),
                                tensor.dtype, box.elements + beyond, false);
  const auto first = [](int) { return Affine(); };
  out_.AddKernel(
      absl::StrCat("pad_", tensor.name),
      CopyBox(out_, access, box, box, buffer, first, lanes,
              any_parallel_ ? LoopKind::kParallel : LoopKind::kSerial, add));
  return {.access = &access,
          .buffer = buffer,
          .offset = [&access, box, first](const Bind& bind) {
            return BoxOffset(access, box, bind, first);
          }};
}

// --- The outer nest ---

std::vector<ContractionEmitter::Level> ContractionEmitter::Levels() const {
  std::vector<Level> levels;
  const auto add = [&](const std::vector<int>& indices, bool in_a) {
    for (int index : indices) {
      if (index == tiling_.row_index) continue;
      levels.push_back({Level::Kind::kIndex, index, in_a});
    }
  };
  add(shape_.batch, true);
  for (LoopGroup group : tiling_.order) {
    switch (group) {
      case LoopGroup::kM:
        add(shape_.m, true);
        if (tiling_.row_index >= 0) {
          levels.push_back({Level::Kind::kRowBlocks, tiling_.row_index, true});
        }
        break;
      case LoopGroup::kN:
        add(shape_.n, false);
        levels.push_back(
            {Level::Kind::kVectorBlocks, shape_.vector, shape_.vector_in_a});
        break;
      case LoopGroup::kK:
        if (tiling_.split_k >= 0) {
          levels.push_back({Level::Kind::kKBlocks, tiling_.split_k, true});
        }
        break;
    }
  }
  MarkParallel(levels);
  return levels;
}

// The longest loop of the parallel group moves to the front.
void ContractionEmitter::MarkParallel(std::vector<Level>& levels) const {
  using Parallel = ContractionTiling::Parallel;
  const auto contains = [](const std::vector<int>& list, int index) {
    return std::count(list.begin(), list.end(), index) > 0;
  };
  size_t best = levels.size();
  int64_t most = 1;
  for (size_t i = 0; i < levels.size(); ++i) {
    const Level& level = levels[i];
    int64_t trips = Extent(level.index);
    Parallel group = Parallel::kNone;
    if (level.kind == Level::Kind::kRowBlocks) {
      trips /= tiling_.row_block;
      group = Parallel::kM;
    } else if (level.kind == Level::Kind::kVectorBlocks) {
      trips /= tiling_.vector_block;
      group = Parallel::kN;
    } else if (level.kind == Level::Kind::kIndex) {
      group = contains(shape_.m, level.index)   ? Parallel::kM
              : contains(shape_.n, level.index) ? Parallel::kN
                                                : Parallel::kBatch;
    }
    if (group == tiling_.parallel && trips > most) {
      best = i;
      most = trips;
    }
  }
  if (tiling_.parallel == Parallel::kNone || best == levels.size()) return;
  levels[best].parallel = true;
  std::rotate(levels.begin(), levels.begin() + best, levels.begin() + best + 1);
}

StmtPtr ContractionEmitter::Nest(size_t i) {
  if (tiling_.pack_a && i == pack_level_ && !a_is_packed_) {
    return WithPackedA(i);
  }
  if (i == levels_.size()) return Tiles();
  const Level& level = levels_[i];
  const LoopKind kind =
      level.parallel ? LoopKind::kParallel : LoopKind::kSerial;
  // Each nest inside or behind a parallel loop has scratch of its own.
  switch (level.kind) {
    case Level::Kind::kIndex:
      return MakeLoop(out_, Extent(level.index), kind, [&](const Affine& var) {
        bound_[level.index] = var;
        return Nest(i + 1);
      });
    case Level::Kind::kRowBlocks:
      return ForTiles(out_, Affine(), Extent(level.index), tiling_.row_block,
                      kind, [&](const Affine& start, int64_t extent) {
                        row_range_ = {start, extent};
                        if (level.parallel) block_a_ = -1;
                        return Nest(i + 1);
                      });
    case Level::Kind::kVectorBlocks:
      return ForTiles(out_, Affine(), Extent(level.index), tiling_.vector_block,
                      kind, [&](const Affine& start, int64_t extent) {
                        vector_range_ = {start, extent};
                        if (level.parallel) block_a_ = -1;
                        return Nest(i + 1);
                      });
    case Level::Kind::kKBlocks:
      return KBlocks(i);
  }
  return nullptr;
}

// The first block starts from nothing; the last one finishes the result. Blocks
// in between share code, and so does the last one when it does the same.
StmtPtr ContractionEmitter::KBlocks(size_t level) {
  const int64_t extent = Extent(tiling_.split_k);
  const int64_t block = tiling_.k_block;
  const int64_t blocks = CeilDiv(extent, block);
  if (blocks == 1) return Nest(level + 1);
  const auto part = [&](const Affine& start, int64_t size, KPart which) {
    k_range_ = {start, size};
    k_part_ = which;
    return Nest(level + 1);
  };
  const bool finishes =
      stage_count_ > 1 || partial_ != out_.TensorBuffer(stage().tensor);
  const int64_t last_size = extent - (blocks - 1) * block;
  const bool last_alike = !finishes && last_size == block;
  std::vector<StmtPtr> parts;
  parts.push_back(part(Affine(), block, {.first = true, .last = false}));
  const int64_t middle = blocks - (last_alike ? 1 : 2);
  if (middle > 0) {
    parts.push_back(
        MakeLoop(out_, middle, LoopKind::kSerial, [&](const Affine& var) {
          return part((var + 1) * block, block,
                      {.first = false, .last = false});
        }));
  }
  if (!last_alike) {
    parts.push_back(part(Affine((blocks - 1) * block), last_size,
                         {.first = false, .last = true}));
  }
  k_range_ = {Affine(), extent};
  k_part_ = KPart();
  return loop::Block(std::move(parts));
}

// Copies the block of A that the levels so far select.
StmtPtr ContractionEmitter::WithPackedA(size_t level) {
  const auto box_for = [&](int64_t rows, int64_t k) {
    std::map<int, int64_t> varying;
    if (tiling_.row_index >= 0) varying[tiling_.row_index] = rows;
    for (int index : shape_.k) {
      varying[index] = index == tiling_.split_k ? k : Extent(index);
    }
    if (shape_.vector_in_a) varying[shape_.vector] = vector_range_.extent;
    return BoxOf(*shape_.a, varying, tiling_.lanes, Group());
  };
  const Box part = box_for(row_range_.extent, k_range_.extent);
  const std::string& name = out_.workload().tensors[shape_.a->tensor].name;
  // Blocks follow one another: they share the scratch of the first, largest.
  if (block_a_ < 0 || out_.buffer(block_a_).elements < part.elements) {
    block_a_ = AddScratch(absl::StrCat("block_", name),
                          out_.workload().tensors[shape_.a->tensor].dtype,
                          part.elements, any_parallel_);
  }
  const int buffer = block_a_;
  std::map<int, Affine> starts = bound_;
  if (tiling_.row_index >= 0) starts[tiling_.row_index] = row_range_.start;
  for (int index : shape_.k) {
    starts[index] = index == tiling_.split_k ? k_range_.start : Affine();
  }
  starts[shape_.vector] = vector_range_.start;
  const Bind first = [starts = std::move(starts)](int index) {
    return starts.at(index);
  };
  a_.buffer = buffer;
  a_.offset = [this, part, first](const Bind& bind) {
    return BoxOffset(*shape_.a, part, bind, first);
  };
  StmtPtr copy = CopyBox(out_, *shape_.a, part, part, buffer, first,
                         CopyLanes(out_.workload().tensors[shape_.a->tensor]),
                         LoopKind::kSerial, AddToA());
  a_is_packed_ = true;
  StmtPtr rest = Nest(level);
  a_is_packed_ = false;
  return loop::Block({std::move(copy), std::move(rest)});
}

StmtPtr ContractionEmitter::Tiles() {
  const auto row_tiles =
      [&](const std::function<StmtPtr(const Affine&, int64_t)>& body) {
        return ForTiles(out_, row_range_.start, row_range_.extent, tiling_.rows,
                        LoopKind::kSerial, body);
      };
  const auto vector_tiles =
      [&](const std::function<StmtPtr(const Affine&, int64_t)>& body) {
        return ForTiles(out_, vector_range_.start, vector_range_.extent,
                        tiling_.TileWidth(), LoopKind::kSerial, body);
      };
  const auto kernel = [&](const Affine& row, int64_t rows,
                          const Affine& element, int64_t width) {
    return MicroKernel(row, rows, element,
                       VectorTile::Of(width, tiling_.lanes));
  };
  if (tiling_.rows_inside) {
    return vector_tiles([&](const Affine& element, int64_t width) {
      return row_tiles([&](const Affine& row, int64_t rows) {
        return kernel(row, rows, element, width);
      });
    });
  }
  return row_tiles([&](const Affine& row, int64_t rows) {
    return vector_tiles([&](const Affine& element, int64_t width) {
      return kernel(row, rows, element, width);
    });
  });
}

}  // namespace regatta
