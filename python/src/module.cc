#include <nanobind/nanobind.h>

#include "archive.h"
#include "batch.h"
#include "errors.h"
#include "native_pipeline.h"
#include "registry.h"

NB_MODULE(_fz, module) {
  module.doc() = "The compiled part of fz; use the package, not this module.";
  module.attr("__version__") = FZ_PYTHON_VERSION;
  module.attr("has_cuda") = FZ_PYTHON_CUDA != 0;
  fz::python::registerErrors();
  fz::python::bindRegistry(module);
  fz::python::bindInspect(module);
  fz::python::bindVerify(module);
  fz::python::bindPipeline(module);
  fz::python::bindBatch(module);
  fz::python::bindArchive(module);
#if FZ_PYTHON_CUDA
  fz::python::bindDevice(module);
#endif
}
