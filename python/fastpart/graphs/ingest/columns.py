class VertexColumns:
    def __init__(self, t, n):
        self.wanted = False


class RelationColumns(VertexColumns):
    pass
