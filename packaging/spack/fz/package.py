# Not tested: written from the Spack documentation, without a Spack at hand.
# spack repo add packaging/spack && spack install fz +cuda cuda_arch=90
from spack.package import *


class Fz(CMakePackage, CudaPackage):
    """Modular, error-bounded compression pipelines for scientific data, on CPUs and NVIDIA GPUs."""

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("hdf5", default=True, description="Let the command line tool read HDF5 datasets")
    variant("shared", default=False, description="Build the C++ library as a shared one")

    depends_on("cxx", type="build")
    depends_on("cmake@3.24:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("tomlplusplus", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("fmt@9:")
    depends_on("intel-oneapi-tbb")
    depends_on("highway@1.0.3:")
    depends_on("libdeflate")
    depends_on("hdf5", when="+hdf5")
    depends_on("cuda@12:", when="+cuda")

    def cmake_args(self):
        args = [
            self.define_from_variant("FZ_CUDA", "cuda"),
            self.define_from_variant("FZ_HDF5", "hdf5"),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define("FZ_TESTS", False),
            self.define("FZ_BENCH", False),
            self.define("FZ_EXAMPLES", False),
        ]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args
